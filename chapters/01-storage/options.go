package storage

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ValidateListOptions turns what a list asks for into what has to be read. withRev is the one
// revision to read at, 0 for the newest. continueKey is the first key to read, "" for all of
// keyPrefix. Errors are 400 BadRequest.
//
// A resource version without a match means, for historical reasons, "exactly this one" in a
// paged list, and "at least this one" in any other.
//
// Upstream: k8s.io/apiserver/pkg/storage/interfaces.go: ValidateListOptions
// Differs: an unknown match is 400 too; a negative continue revision is the only way to read
// the rest at the newest state.
func ValidateListOptions(
	keyPrefix string, opts ListOptions,
) (withRev int64, continueKey string, err error) {
	if opts.Recursive && opts.Predicate.Continue != "" {
		return validateContinue(keyPrefix, opts)
	}
	rv, err := APIObjectVersioner{}.ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return 0, "", apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	}
	switch opts.ResourceVersionMatch {
	case metav1.ResourceVersionMatchNotOlderThan:
		return 0, "", nil // checked against what was read
	case metav1.ResourceVersionMatchExact:
		return int64(rv), "", nil
	case "":
		if opts.Recursive && opts.Predicate.Limit > 0 {
			return int64(rv), "", nil
		}
		return 0, "", nil
	default:
		message := fmt.Sprintf("unknown resourceVersionMatch %q", opts.ResourceVersionMatch)
		return 0, "", apierrors.NewBadRequest(message)
	}
}

func validateContinue(keyPrefix string, opts ListOptions) (withRev int64, continueKey string, err error) {
	continueKey, rv, err := DecodeContinue(opts.Predicate.Continue, keyPrefix)
	if err != nil {
		return 0, "", apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: %v", err))
	}
	if opts.ResourceVersion != "" && opts.ResourceVersion != "0" {
		return 0, "", apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	return max(rv, 0), continueKey, nil
}

// AreInitialEventsRequired reports whether a watch from rv begins with the current state: because it says so, or,
// if it says nothing, because it has no resource version to begin after.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/watcher.go: areInitialEventsRequired
func (o *ListOptions) AreInitialEventsRequired(rv uint64) bool {
	if o.SendInitialEvents == nil {
		return rv == 0
	}
	return *o.SendInitialEvents
}

// IsInitialEventsEndBookmarkRequired reports whether a watch wants to be told where its initial events end.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/watcher.go: isInitialEventsEndBookmarkRequired
func (o *ListOptions) IsInitialEventsEndBookmarkRequired() bool {
	return o.SendInitialEvents != nil && *o.SendInitialEvents && o.Predicate.AllowWatchBookmarks
}

// AnnotateInitialEventsEndBookmark marks obj, the object of a bookmark, as the one that ends the initial events.
//
// Upstream: k8s.io/apiserver/pkg/storage/util.go: AnnotateInitialEventsEndBookmark
func AnnotateInitialEventsEndBookmark(obj runtime.Object) error {
	accessor, err := metaAccessor(obj)
	if err != nil {
		return err
	}
	annotations := accessor.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[metav1.InitialEventsAnnotationKey] = "true"
	accessor.SetAnnotations(annotations)
	return nil
}
