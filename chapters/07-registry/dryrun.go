package registry

import (
	"context"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	storage "listwatch/chapters/01-storage"
)

// DryRunnableStorage is a storage whose writes can stop just before the write. A dry write reads and checks as a real
// one does and returns what would have been stored, but makes no revision and no event.
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/dryrun.go: DryRunnableStorage
type DryRunnableStorage struct {
	storage.Interface // reads have nothing to stop
}

// isDryRun reports whether a dryRun option, validated before, asks for a dry run.
func isDryRun(dryRun []string) bool { return slices.Contains(dryRun, metav1.DryRunAll) }

// Create is [storage.Interface.Create], perhaps dry.
func (s DryRunnableStorage) Create(ctx context.Context, key string, obj, out runtime.Object, dryRun bool) error {
	if !dryRun {
		return s.Interface.Create(ctx, key, obj, out)
	}
	err := s.Get(ctx, key, storage.GetOptions{}, out)
	if err == nil {
		return storage.NewKeyExistsError(key, 0)
	}
	if !storage.IsNotFound(err) {
		return err
	}
	copyInto(out, obj)
	return nil
}

// Delete is [storage.Interface.Delete], perhaps dry.
func (s DryRunnableStorage) Delete(ctx context.Context, key string, out runtime.Object,
	preconditions *storage.Preconditions, dryRun bool) error {
	if !dryRun {
		return s.Interface.Delete(ctx, key, out, preconditions, nil)
	}
	if err := s.Get(ctx, key, storage.GetOptions{}, out); err != nil {
		return err
	}
	return preconditions.Check(key, out)
}

// GuaranteedUpdate is [storage.Interface.GuaranteedUpdate], perhaps dry.
func (s DryRunnableStorage) GuaranteedUpdate(ctx context.Context, key string,
	out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, dryRun bool) error {
	if !dryRun {
		return s.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions,
			update, nil)
	}
	if err := s.Get(ctx, key, storage.GetOptions{IgnoreNotFound: ignoreNotFound},
		out); err != nil {
		return err
	}
	if err := preconditions.Check(key, out); err != nil {
		return err
	}
	updated, err := update(out.DeepCopyObject())
	if err != nil {
		return err
	}
	copyInto(out, updated)
	return nil
}

// copyInto makes out a deep copy of in, which is of the same type.
// Differs: upstream copies by encoding and decoding.
func copyInto(out, in runtime.Object) {
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(in.DeepCopyObject()).Elem())
}
