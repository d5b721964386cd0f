// Command oldkubectl is the real kubectl of 1.26, the last that uses only the old discovery, group by group, and
// OpenAPI v2 in protobuf. Attendees bring kubectls of any age; this one represents the old ones on every machine. The
// command has a go.mod of its own, because a build has one version of a module.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
)

func main() { os.Exit(cli.Run(cmd.NewDefaultKubectlCommand())) }
