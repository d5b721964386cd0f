// Command kubeapiserver is the real kube-apiserver, of the version this project is compared with. It has a go.mod of
// its own: the repository of Kubernetes replaces its published modules by its folders, which a module that uses it must
// replace back, one by one.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
