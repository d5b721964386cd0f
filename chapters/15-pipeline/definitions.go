package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	registry "listwatch/chapters/07-registry"
	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

const (
	// maxCustomVersions is how many versions of custom resources are served, of all definitions together: each may have
	// a cache.
	maxCustomVersions = 128
	// definitionsRetry is the time after which we try again to write what etcd did not take, or look again whether the
	// objects of a kind are gone.
	definitionsRetry = time.Second
)

type definition = apiextensionsv1.CustomResourceDefinition

// definitions serves the kinds that definitions describe.
//
// Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go: completedConfig
// Differs: one loop for what are an informer and five controllers there: while it deletes the objects of a kind, it
// looks at no other definition. It reads etcd itself, and what it reads is not in the log. Two definitions of a group
// may use the same kind or short name.
type definitions struct {
	// Set by newDefinitions, never changed.
	server  *Server
	read    *registry.Store // of definitions: etcd's
	written *registry.Store // the same, as clients see them

	// Owned by the goroutine of run.
	served map[string]*customKind // by the definition's name
}

// customKind is a kind as one state of its definition describes it. It never changes.
type customKind struct {
	from     *definition
	storages []*onDemand     // of its versions
	uncached *registry.Store // of any of them
	rest     map[string]handlers.Storage
}

// newDefinitions returns a controller that serves nothing yet.
func newDefinitions(s *Server) (*definitions, error) {
	c := s.stored["customresourcedefinitions.apiextensions.k8s.io"]
	raw, err := s.storageOf(c.Resource, nil)
	if err != nil {
		return nil, err
	}
	d := &definitions{server: s, written: registry.New(c), served: map[string]*customKind{}}
	c.Storage, c.Probe = raw.(*onDemand).Store, nil
	d.read = registry.New(c)
	return d, nil
}

// run serves custom resources until ctx is done.
func (d *definitions) run(ctx context.Context) {
	for ctx.Err() == nil {
		if d.follow(ctx) != nil {
			_ = routine.Sleep(ctx, d.server.config.Clock, definitionsRetry) // ended early: the loop looks at ctx, too
		}
	}
}

// follow serves the definitions that there are, and returns when there are others, or when it
// is time to look again whether the objects of a kind are gone.
func (d *definitions) follow(ctx context.Context) error {
	read, err := d.read.List(ctx, "", &metainternalversion.ListOptions{})
	if err != nil {
		return err
	}
	list := read.(*apiextensionsv1.CustomResourceDefinitionList)
	again, err := d.sync(ctx, list.Items)
	if err != nil {
		return err
	}
	d.server.prepare()
	if again { // whatever changes meanwhile, a status that sync has written included
		return routine.Sleep(ctx, d.server.config.Clock, definitionsRetry)
	}
	since := &metainternalversion.ListOptions{ResourceVersion: list.ResourceVersion}
	changes, err := d.read.Watch(ctx, "", since)
	if err != nil {
		return err
	}
	defer changes.Stop()
	select {
	case <-ctx.Done():
		return nil
	case event, ok := <-changes.ResultChan():
		if !ok || event.Type == watch.Error {
			return errors.New("the watch on definitions has ended")
		}
		return nil // it does not matter what has changed: the next list shows it
	}
}

// sync makes what is served follow from the definitions. again: the objects of a kind are not gone yet. The error is
// that something could not be written.
func (d *definitions) sync(ctx context.Context, all []definition) (again bool, err error) {
	slices.SortFunc(all, func(a, b definition) int { return cmp.Compare(a.Name, b.Name) })
	// A cache ends before another of its resource may begin: both have the same names in metrics and log. A request in
	// between is answered 429.
	changed := d.stop(ctx, all)
	refused := map[string]error{}
	for i := range all {
		if name := all[i].Name; d.served[name] == nil {
			kind, err := d.newKind(&all[i])
			if refused[name] = cmp.Or(err, d.checkRoom(&all[i])); refused[name] == nil {
				d.served[name], changed = kind, true
			}
		}
	}
	// A kind is served before its definition says so: a client that waits for that finds it.
	if changed {
		d.serve()
	}
	for i := range all {
		err = errors.Join(err, d.tell(ctx, &all[i], refused[all[i].Name]))
		if all[i].DeletionTimestamp != nil {
			again = d.finalize(ctx, &all[i]) != nil || again
		}
	}
	return again, err
}

// stop ends the caches of kinds whose definitions have changed or gone, and reports whether there were any.
func (d *definitions) stop(ctx context.Context, all []definition) bool {
	gone := maps.Clone(d.served)
	for i := range all {
		kind := d.served[all[i].Name]
		if kind != nil && kind.from.UID == all[i].UID && equality.Semantic.DeepEqual(kind.from.Spec, all[i].Spec) {
			delete(gone, all[i].Name)
		}
	}
	for name, kind := range gone {
		for _, each := range kind.storages {
			if each.stop(ctx) {
				d.server.config.Probe.Resource(each.resource.Called).At(probe.ResourceStopped, "", 0)
			}
		}
		delete(d.served, name)
	}
	return len(gone) > 0
}

// serve replaces the routes.
func (d *definitions) serve() {
	rest := map[string]handlers.Storage{}
	for _, kind := range d.served {
		maps.Copy(rest, kind.rest)
	}
	d.server.api.Serve(rest)
}

// checkRoom returns why one more kind cannot be served, nil if it can.
func (d *definitions) checkRoom(from *definition) error {
	n := len(from.Spec.Versions)
	for _, other := range d.served {
		n += len(other.storages)
	}
	if n > maxCustomVersions {
		return fmt.Errorf("no more than %d versions of custom resources are served", maxCustomVersions)
	}
	return nil
}

// newKind wires the resources of a definition, as [NewServer] does those that are always there.
func (d *definitions) newKind(from *definition) (*customKind, error) {
	rows, err := registry.CustomResources(from)
	if err != nil {
		return nil, err
	}
	kind := &customKind{from: from, rest: map[string]handlers.Storage{}}
	for i, row := range rows {
		stored, err := d.server.storageOf(row, d.server.config.Probe)
		if err != nil {
			return nil, err
		}
		cached := stored.(*onDemand)
		c := registry.Config{Resource: row, Storage: cached, Clock: d.server.config.Clock,
			Namespaces: d.server.namespaces, Probe: d.server.config.Probe.Resource(row.Called)}
		for path, each := range handlers.Storages(c) {
			if from.Spec.Versions[i].Served {
				kind.rest[row.GroupVersion.Version+":"+path] = each
			}
		}
		c.Storage = cached.Store
		kind.storages, kind.uncached = append(kind.storages, cached), registry.New(c)
	}
	return kind, nil
}

// tell writes into the status of a definition whether its kind is served, or why it is refused.
//
// Upstream: k8s.io/apiextensions-apiserver/pkg/controller/status/naming_controller.go: NamingConditionController
func (d *definitions) tell(ctx context.Context, about *definition, refused error) error {
	now := metav1.NewTime(d.server.config.Clock.Now()).Rfc3339Copy()
	how := func(obj *definition) { setConditions(obj, refused, now) }
	told := about.DeepCopy()
	if how(told); equality.Semantic.DeepEqual(told.Status, about.Status) {
		return nil
	}
	_, _, err := registry.NewStatusREST(d.written).Update(ctx, "", about.Name, change(how), false,
		&metav1.UpdateOptions{})
	return ignoreNotFound(err)
}

func setConditions(obj *definition, refused error, now metav1.Time) {
	was := obj.DeepCopy()
	obj.Status.AcceptedNames, obj.Status.Conditions = obj.Spec.Names, nil
	set := func(kind apiextensionsv1.CustomResourceDefinitionConditionType, reason, message string) {
		condition := apiextensionsv1.CustomResourceDefinitionCondition{Type: kind, Reason: reason, Message: message,
			Status: apiextensionsv1.ConditionTrue, LastTransitionTime: now}
		if refused != nil {
			condition.Status, condition.Reason, condition.Message = "False", "NotAccepted", refused.Error()
		}
		if old := apihelpers.FindCRDCondition(was, kind); old != nil && old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
		}
		obj.Status.Conditions = append(obj.Status.Conditions, condition)
	}
	set(apiextensionsv1.NamesAccepted, "NoConflicts", "no conflicts found")
	set(apiextensionsv1.Established, "InitialNamesAccepted", "the initial names have been accepted")
	if refused = nil; obj.DeletionTimestamp != nil {
		set(apiextensionsv1.Terminating, "InstanceDeletionInProgress", "CustomResource deletion is in progress")
	}
}

// finalize deletes the objects of a kind whose definition is being deleted, and lets the definition go if there are
// none. Objects without a finalizer are gone at once, but the definition stays until the next look: by then the cache,
// which is behind etcd, has told its watchers of the deletions. The error is that the definition is still there.
//
// Upstream: k8s.io/apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go: (*CRDFinalizer).deleteInstances
func (d *definitions) finalize(ctx context.Context, of *definition) error {
	kind := d.served[of.Name]
	if kind == nil {
		if kind, _ = d.newKind(of); kind == nil {
			return nil // a schema that cannot be read has let no object in
		}
	}
	kind.storages[0].resource.Custom.Going.Store(true)
	everything := &metainternalversion.ListOptions{}
	left, err := kind.uncached.List(ctx, "", everything)
	if err != nil {
		return err
	}
	if n := meta.LenList(left); n > 0 {
		_, err := kind.uncached.DeleteCollection(ctx, "", &metav1.DeleteOptions{}, everything)
		return cmp.Or(err, fmt.Errorf("there were %d objects", n))
	}
	_, _, err = d.written.Update(ctx, "", of.Name, change(func(obj *definition) {
		apihelpers.CRDRemoveFinalizer(obj, apiextensionsv1.CustomResourceCleanupFinalizer)
	}), false, &metav1.UpdateOptions{})
	return ignoreNotFound(err)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// change returns an update of a definition.
func change(how func(*definition)) registry.UpdatedObjectInfo {
	return func(_ context.Context, old runtime.Object) (runtime.Object, error) {
		obj := old.(*definition).DeepCopy()
		how(obj)
		return obj, nil
	}
}
