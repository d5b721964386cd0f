package viz

import (
	cmdline "flag"
	"fmt"
	"maps"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/hold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/play/scenario"
	"listwatch/viz/stage"
	"listwatch/viz/stories"
	"listwatch/viz/timeline"
)

var update = cmdline.Bool("update", false, "write log/types.d.ts instead of comparing it")

// TestTypesAreFresh expects log/types.d.ts to declare the types of the program's messages as Go's structs and tables
// do, under Go's names: probe.Record, fold.State.
func TestTypesAreFresh(t *testing.T) {
	const file = "log/types.d.ts"
	d := declarations{}
	for _, root := range []any{probe.Record{}, fold.Point{}, fold.State{}, timeline.Span{}, hold.Status{},
		scenario.Story{}, scenario.Range{}, scenario.Seen{}, stories.Pace{}, timeline.Limits{}} {
		d.of(reflect.TypeOf(root), false)
	}
	queues, args, texts := map[string]bool{}, map[string]bool{}, map[string]bool{}
	d["probe"]["PointName"] = ""
	for _, point := range fold.Points() {
		d["probe"]["PointName"] += " | " + fmt.Sprintf("%q", point.Name)
		for _, name := range point.Args.List() {
			args[name] = true
		}
		for _, name := range point.Texts.List() {
			texts[name] = true
		}
		if point.Queue != "" && !queues[point.Queue] {
			queues[point.Queue] = true
			d["probe"]["QueueName"] += " | " + fmt.Sprintf("%q", point.Queue)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		d["probe"]["ArgName"] += " | " + fmt.Sprintf("%q", name)
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		d["probe"]["TextName"] += " | " + fmt.Sprintf("%q", name)
	}
	for _, station := range probe.Stations {
		d["probe"]["Station"] += " | " + fmt.Sprintf("%q", station)
	}
	d["stage"] = map[string]string{}
	d["stage"]["Geometry"] = d.value(reflect.ValueOf(stage.Geometry))
	want := d.String()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
	}
	got := require.Value(os.ReadFile(file))(t)
	assert.Equal(t, want, strings.ReplaceAll(string(got), "\r\n", "\n"), "%s is stale: run make generate", file)
}

// declarations are TypeScript types by package and name.
type declarations map[string]map[string]string

func (d declarations) String() string {
	out := "// Code generated from the program's structs and tables: make generate. DO NOT EDIT.\n"
	for _, namespace := range slices.Sorted(maps.Keys(d)) {
		out += fmt.Sprintf("\ndeclare namespace %s {\n", namespace)
		for _, name := range slices.Sorted(maps.Keys(d[namespace])) {
			out += wrapped(fmt.Sprintf("  type %s = %s;", name, strings.TrimPrefix(d[namespace][name], " | ")))
		}
		out += "}\n"
	}
	return out
}

// wrapped breaks a line at 120 columns.
func wrapped(line string) (lines string) {
	for len(line) > 120 {
		at := strings.LastIndex(line[:120], " ")
		lines, line = lines+line[:at]+"\n", "    "+line[at+1:]
	}
	return lines + line + "\n"
}

// of returns the TypeScript name of a type, and declares it if it is a struct. A number encoded as text is a string.
func (d declarations) of(t reflect.Type, text bool) string {
	switch {
	case text:
		return "string"
	case t == reflect.TypeFor[probe.Point]():
		return "probe.PointName"
	case t == reflect.TypeFor[probe.Station]():
		return "probe.Station"
	case t == reflect.TypeFor[probe.Words]():
		return "string[]"
	case t == reflect.TypeFor[probe.Texts]():
		return "{ [name in probe.TextName]?: string }"
	case t.PkgPath() == "time" && t.Name() == "Time":
		return "string"
	case t.PkgPath() == "encoding/json":
		return "unknown"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.of(t.Elem(), false)
	case reflect.Slice, reflect.Array:
		return d.of(t.Elem(), false) + "[]"
	case reflect.Map:
		return fmt.Sprintf("{ [name: string]: %s }", d.of(t.Elem(), false))
	case reflect.Struct:
		return d.declare(t)
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	}
	return "number"
}

// keyed has, by the name of a field that is a map with keys from a table, the type of these keys.
var keyed = map[string]string{"points": "PointName", "counts": "PointName", "texts": "PointName", "stations": "Station",
	"vars": "ArgName"}

func (d declarations) declare(t reflect.Type) string {
	namespace, name := path.Base(t.PkgPath()), strings.ToUpper(t.Name()[:1])+t.Name()[1:]
	if d[namespace] == nil {
		d[namespace] = map[string]string{}
	}
	if d[namespace][name] == "" {
		d[namespace][name] = "{}" // ends the recursion of a type that contains itself
		d[namespace][name] = "{ " + strings.Join(d.fields(t), "; ") + " }"
	}
	return namespace + "." + name
}

// fields returns the fields in the JSON, except those that only the program uses.
func (d declarations) fields(t reflect.Type) (fields []string) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		inner := field.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		private := inner.PkgPath() == "listwatch/internal/play/scenario" && inner.Name() >= "a"
		switch {
		case field.Anonymous && name == "":
			fields = append(fields, d.fields(inner)...)
			continue
		case name == "" || name == "-" || private:
			continue
		}
		optional := ""
		if strings.Contains(options, "omit") || t == reflect.TypeFor[probe.Record]() && name == "args" {
			optional = "?"
		}
		is := d.of(field.Type, strings.Contains(options, "string"))
		switch key := keyed[name]; {
		case key != "" && field.Type.Kind() == reflect.Map:
			is = fmt.Sprintf("{ [name in probe.%s]?: %s }", key, d.of(field.Type.Elem(), false))
		case name == "point" && field.Type.Kind() == reflect.String:
			is = `probe.PointName | ""`
		case name == "name" && t == reflect.TypeFor[probe.Info]():
			is = "probe.PointName"
		}
		fields = append(fields, name+optional+": "+is)
	}
	return fields
}

// value returns the TypeScript type of a value, with the keys of its maps, and declares its structs in namespace stage.
func (d declarations) value(v reflect.Value) string {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Map:
		fields, names, types := []string{}, []string{}, map[string]bool{}
		for key, value := range v.Seq2() {
			is := d.value(value)
			types[is] = true
			fields = append(fields, fmt.Sprintf("%q: %s", key, is))
			names = append(names, fmt.Sprintf("%q", key))
		}
		slices.Sort(fields)
		slices.Sort(names)
		if is := slices.Collect(maps.Keys(types)); len(is) == 1 {
			return fmt.Sprintf("{ [name in %s]: %s }", strings.Join(names, " | "), is[0])
		}
		return "{ " + strings.Join(fields, "; ") + " }"
	case reflect.Struct:
		name := strings.ToUpper(v.Type().Name()[:1]) + v.Type().Name()[1:]
		d["stage"][name] = ""
		for i := range v.NumField() {
			d["stage"][name] += "; " + v.Type().Field(i).Name + ": " + d.value(v.Field(i))
		}
		d["stage"][name] = "{ " + strings.TrimPrefix(d["stage"][name], "; ") + " }"
		return "stage." + name
	case reflect.Array:
		return "[" + strings.TrimSuffix(strings.Repeat(d.value(v.Index(0))+", ", v.Len()), ", ") + "]"
	case reflect.String:
		return "string"
	}
	return "number"
}
