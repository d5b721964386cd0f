package registry

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/observe/probe"
)

// Config is what a [Store] is made of.
type Config struct {
	Resource *Resource
	Storage  storage.Interface // etcd3 store or CacheDelegator
	Clock    clock.PassiveClock
	Probe    *probe.Probe // nil: off

	// Namespaces tells whether a namespace exists before an object is created in it. nil: every namespace exists.
	Namespaces NamespaceGetter
}

// Store gives one resource its meaning on top of one [storage.Interface]. It is safe for
// concurrent use.
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: Store
// Differs: the namespace of a request is a parameter, not a value in the context; the time to
// live is the resource's; no hooks; of admission, which upstream does before, only the rules of
// namespaces.
type Store struct {
	// Set by New, never changed.
	resource       *Resource
	updateStrategy UpdateStrategy
	createOnUpdate bool // the strategy's choice; never through a subresource
	storage        DryRunnableStorage
	clock          clock.PassiveClock
	probe          *probe.Probe
	namespaces     NamespaceGetter // nil: every namespace exists
	generateName   func(base string) string
}

// New returns a store for cfg.Resource.
func New(cfg Config) *Store {
	return &Store{
		resource:       cfg.Resource,
		updateStrategy: cfg.Resource.Strategy,
		createOnUpdate: cfg.Resource.Strategy.AllowCreateOnUpdate(),
		storage:        DryRunnableStorage{cfg.Storage},
		clock:          cfg.Clock,
		probe:          cfg.Probe,
		namespaces:     cfg.Namespaces,
		generateName:   SimpleName,
	}
}

// Describe returns what is known about the resource.
func (s *Store) Describe() *Resource { return s.resource }

// New returns an empty object of the resource's kind.
func (s *Store) New() runtime.Object { return s.resource.NewFunc() }

// A generated name fits a DNS label: the last letters of a long base are cut off.
const (
	randomLength           = 5
	maxGeneratedNameLength = 63 - randomLength
)

// SimpleName returns base with five random digits and consonants appended. The name may be taken.
//
// Upstream: k8s.io/apiserver/pkg/storage/names/generate.go
func SimpleName(base string) string {
	if len(base) > maxGeneratedNameLength {
		base = base[:maxGeneratedNameLength]
	}
	return base + rand.String(randomLength)
}

// maxNameGenerationAttempts is how many generated names Create tries before it reports a collision. With five letters
// of 27, collisions are rare until some thousand names have the same prefix.
const maxNameGenerationAttempts = 8

// Create stores a new object and returns it as stored. It generates a name if there is only a
// generateName. Errors: 400 for a wrong namespace or a resource version, 404 or 403 for a
// namespace that does not exist or is going away, 409 AlreadyExists, 422 Invalid. A resource
// version that is "0", or does not parse, is ignored.
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: (*Store).Create
// Differs: a resource version is refused before anything else, and with 400; upstream leaves
// that to the storage, whose refusal is a 500.
func (s *Store) Create(ctx context.Context, namespace string, obj runtime.Object,
	options *metav1.CreateOptions) (runtime.Object, error) {
	rv, err := storage.APIObjectVersioner{}.ObjectResourceVersion(obj)
	if err == nil && rv != 0 {
		return nil, apierrors.NewBadRequest(
			"resourceVersion should not be set on objects to be created")
	}
	base := metadata(obj).GetGenerateName()
	if metadata(obj).GetName() != "" || base == "" {
		return s.create(ctx, namespace, obj, isDryRun(options.DryRun))
	}
	for range maxNameGenerationAttempts {
		attempt := obj.DeepCopyObject()
		metadata(attempt).SetName(s.generateName(base))
		out, err := s.create(ctx, namespace, attempt, isDryRun(options.DryRun))
		if !apierrors.IsAlreadyExists(err) {
			return out, err
		}
	}
	return nil, apierrors.NewGenerateNameConflict(s.resource.GroupResource(), base, 1)
}

func (s *Store) create(ctx context.Context, namespace string, obj runtime.Object, dryRun bool) (runtime.Object, error) {
	if err := s.admitCreate(ctx, namespace, metadata(obj).GetName()); err != nil {
		return nil, err
	}
	if err := s.beforeCreate(namespace, obj); err != nil {
		return nil, err
	}
	key, err := s.resource.ObjectKey(obj)
	if err != nil {
		return nil, err
	}
	out := s.resource.NewFunc()
	err = s.storage.Create(ctx, key, obj, out, dryRun)
	if err != nil {
		err = storage.InterpretError(err, "create", s.resource.GroupResource(), metadata(obj).GetName())
		return nil, s.explainAlreadyExists(ctx, key, err)
	}
	return out, nil
}

// metadata returns the metadata of a stored object.
func metadata(obj runtime.Object) metav1.Object { return obj.(metav1.Object) }

// explainAlreadyExists adds to the error that the existing object is being deleted: the client may try again.
func (s *Store) explainAlreadyExists(ctx context.Context, key string, err error) error {
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	existing := s.resource.NewFunc()
	if s.storage.Get(ctx, key, storage.GetOptions{}, existing) != nil ||
		metadata(existing).GetDeletionTimestamp() == nil {
		return err
	}
	deleting := apierrors.NewAlreadyExists(s.resource.GroupResource(), metadata(existing).GetName())
	deleting.ErrStatus.Message = fmt.Sprintf("object is being deleted: %s", deleting.ErrStatus.Message)
	return deleting
}

// Get returns one object, at least as new as options.ResourceVersion. Errors: 400, 404, 504 for a version not reached.
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: (*Store).Get
func (s *Store) Get(ctx context.Context, namespace, name string, options *metav1.GetOptions) (runtime.Object, error) {
	key, err := s.resource.Key(namespace, name)
	if err != nil {
		return nil, err
	}
	obj := s.resource.NewFunc()
	err = s.storage.Get(ctx, key, storage.GetOptions{ResourceVersion: options.ResourceVersion}, obj)
	if err != nil {
		return nil, storage.InterpretError(err, "get", s.resource.GroupResource(), name)
	}
	return obj, nil
}
