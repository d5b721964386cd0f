// Command kubectl is the real kubectl, built from its own module at the version this project is compared with, so that
// a machine without one can run the tests.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
)

func main() { os.Exit(cli.Run(cmd.NewDefaultKubectlCommand())) }
