package handlers

import registry "listwatch/chapters/07-registry"

// Storages returns the storages of the paths of cfg.Resource: the resource itself, its status if it has one, and the
// binding and eviction of pods; bindings have a path of their own, too. The keys are those of [Config.Storage].
func Storages(cfg registry.Config) map[string]Storage {
	name := cfg.Resource.GroupResource().String()
	if name == "pods" {
		pods := registry.NewPodStorage(cfg)
		return map[string]Storage{"pods": pods.Pod, "pods/status": pods.Status, "pods/binding": pods.Binding,
			"pods/eviction": pods.Eviction, "bindings": registry.BindingsREST{BindingREST: pods.Binding}}
	}
	store := registry.New(cfg)
	storages := map[string]Storage{name: store}
	if cfg.Resource.StatusStrategy != nil {
		storages[name+"/status"] = registry.NewStatusREST(store)
	}
	if name == "namespaces" {
		storages[name+"/finalize"] = registry.NewFinalizeREST(store)
	}
	return storages
}
