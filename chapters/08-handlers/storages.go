package handlers

import registry "listwatch/chapters/07-registry"

// Storages returns the storages of the paths of cfg.Resource: the resource itself, its status if it has one, the
// binding of pods, and the end of namespaces. The keys are those of [Config.Storage].
func Storages(cfg registry.Config) map[string]Storage {
	name, store := cfg.Resource.GroupResource().String(), registry.New(cfg)
	storages := map[string]Storage{name: store}
	if cfg.Resource.StatusStrategy != nil {
		storages[name+"/status"] = registry.NewStatusREST(store)
	}
	switch name {
	case "namespaces":
		storages[name+"/finalize"] = registry.NewFinalizeREST(store)
	case "pods":
		storages[name+"/binding"] = &registry.BindingREST{Store: store}
	}
	return storages
}
