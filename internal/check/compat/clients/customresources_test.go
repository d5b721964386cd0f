//go:build full

package clients

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"listwatch/internal/check/compat/program"
)

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}
    schema:
      openAPIV3Schema: &schema
        type: object
        description: Widget is a thing.
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 1, maximum: 10, description: How large it is.}
              color: {type: string, enum: [red, blue], default: red}
              port: {x-kubernetes-int-or-string: true}
              tags: {type: array, items: {type: string, pattern: '^[a-z]+$'}, x-kubernetes-list-type: set}
              owner: {type: object, nullable: true, properties: {name: {type: string, default: me}}}
          status:
            type: object
            properties:
              conditions:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [type]
                items: {type: object, required: [type], properties: {type: {type: string}, status: {type: string}}}
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: *schema}}
`

// path is that of a file of a test.
var path = regexp.MustCompile(`"/[^"]*objects.yaml"`)

// customResources is a session with a kind that is defined in it.
func customResources(t *testing.T, at *target) (facts []string) {
	say := func(args ...string) {
		t.Helper()
		p := program.Start(t, at.Command(args...))
		code := p.ExitCode(t, program.HangsAfter)
		for line := range strings.Lines(p.Stdout.String() + "\n" + p.Stderr.String()) {
			if text := strings.TrimSpace(path.ReplaceAllString(line, "FILE")); text != "" {
				facts = append(facts, fmt.Sprintf("%s (%d): %s", strings.Join(args[:2], " "), code, text))
			}
		}
	}
	widget := func(spec string) string {
		return file(t, "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {"+spec+"}\n")
	}
	at.apply(t, widgets)
	at.Run(t, "wait", "--for=condition=Established", "crd/widgets.example.com")
	say("get", "crd/widgets.example.com", "-o", "jsonpath={range .status.conditions[*]}{.type}={.status} {.reason}: "+
		"{.message}{\"\\n\"}{end}{.status.acceptedNames} {.status.storedVersions} {.metadata.generation}")
	say("api-resources", "--api-group=example.com")
	program.Eventually(t, patience, func() (bool, string) { // the real server publishes it some time after Established
		p := program.Start(t, at.Command("explain", "widget.spec"))
		return p.ExitCode(t, program.HangsAfter) == 0, p.Stderr.String()
	})
	say("explain", "widget.spec")
	for _, spec := range []string{"size: 11, color: green", `size: "x"`, "color: red", "size: 1, bad: 1", "size: 1, port: {}",
		"size: 1, tags: [a, a]", "size: 1, tags: [A]", "size: 1, tags: [1], owner: 7", "size: null", "size: 1.5"} {
		say("create", "-f", widget(spec))
	}
	say("create", "--validate=warn", "-f", widget("size: 3, owner: {}, bad: {worse: 1}, color: null"))
	say("get", "widget/a", "-o", "jsonpath={.spec} {.metadata.generation}")
	say("get", "widgets.v1beta1.example.com/a", "-o", "jsonpath={.apiVersion} {.spec}")
	say("patch", "widget/a", "-p", `{"spec":{"size":4}}`)
	say("patch", "widget/a", "--type=merge", "-p", `{"spec":{"size":4,"owner":null},"status":{"conditions":[]}}`)
	say("patch", "widget/a", "--type=merge", "--subresource=status", "-p",
		`{"spec":{"size":5},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
	say("get", "widget/a", "-o", "jsonpath={.spec} {.status} {.metadata.generation}")
	say("get", "wd")
	say("apply", "--server-side", "-f", widget("size: 6"))
	say("apply", "--server-side", "--force-conflicts", "-f", widget("size: 6"))
	say("apply", "--server-side", "-f", widget("bad: 6"))
	say("get", "widget/a", "-o", "jsonpath={.metadata.generation}")
	say("get", "widgets", "--field-selector=spec.size=6")
	say("patch", "crd/widgets.example.com", "--type=merge", "-p", `{"spec":{"scope":"Cluster"}}`)
	watching := program.Start(t, at.Command("get", "widgets", "-w", "--output-watch-events", "--no-headers"))
	program.Eventually(t, patience, func() (bool, string) {
		return strings.Contains(watching.Stdout.String(), "ADDED"), watching.Stderr.String()
	})
	say("delete", "crd/widgets.example.com")
	if code := watching.ExitCode(t, patience); code != 0 {
		facts = append(facts, fmt.Sprint("watch ended with ", code))
	}
	facts = append(facts, watching.Stdout.Lines()...)
	say("get", "widgets")
	return facts
}
