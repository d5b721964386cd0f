package resources

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// CustomColumns returns the columns that a definition names for a version; if it names none, the age.
func CustomColumns(version *apiextensionsv1.CustomResourceDefinitionVersion) []Column {
	if len(version.AdditionalPrinterColumns) == 0 {
		return NameAndAgeColumns
	}
	columns := []Column{nameColumn}
	for _, each := range version.AdditionalPrinterColumns {
		path, _ := parseJSONPath(each.JSONPath) // it has been validated
		columns = append(columns, Column{each.Name, each.Description, each.Priority > 0, func(r *Row) any {
			return cell(valueAt(r.Object.(*unstructured.Unstructured).Object, path), each.Type, r.Now)
		}})
	}
	return columns
}

// cell shows a value; of a date the time since.
func cell(value any, as string, now time.Time) any {
	switch value := value.(type) {
	case map[string]any, []any:
		return fmt.Sprint(value)
	case string:
		if t, err := time.Parse(time.RFC3339, value); as == "date" && err == nil {
			return age(metav1.NewTime(t), now)
		}
	}
	return value
}

// jsonPathStep is one step of a path: .name, ['name'], [1], [*] or [?(@.name=="value")].
var jsonPathStep = regexp.MustCompile(`\.((?:\\.|[^.\[\\])+)|\['([^']*)'\]|\[(\d+)\]|\[\*\]` +
	`|\[\?\(\s*@\.([^=\s]+)\s*==\s*["']?([^"')]*)["']?\s*\)\]`)

// parseJSONPath returns the steps of a path, each as the groups of [jsonPathStep]; ok is false if something else is in
// it.
//
// Upstream: k8s.io/client-go/util/jsonpath
// Differs: only the steps that definitions need.
func parseJSONPath(path string) (steps [][]string, ok bool) {
	length := 0
	for _, step := range jsonPathStep.FindAllStringSubmatch(path, -1) {
		steps, length = append(steps, step), length+len(step[0])
	}
	return steps, length == len(path)
}

// valueAt returns the first value to which a path leads; nil if there is none.
func valueAt(value any, path [][]string) any {
	if len(path) == 0 {
		return value
	}
	step, rest := path[0], path[1:]
	if name := strings.ReplaceAll(step[1]+step[2], `\`, ""); name != "" {
		fields, _ := value.(map[string]any)
		return valueAt(fields[name], rest)
	}
	items, _ := value.([]any)
	for i, each := range items {
		fields, _ := each.(map[string]any)
		if step[3] != "" && step[3] != strconv.Itoa(i) || step[4] != "" && fmt.Sprint(fields[step[4]]) != step[5] {
			continue
		}
		if found := valueAt(each, rest); found != nil {
			return found
		}
	}
	return nil
}
