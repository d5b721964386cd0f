package main

import (
	"maps"
	"slices"
	"strings"
)

// swaggerOf returns the OpenAPI v2 document that says the same as one of v3. The definitions are those of v2, which has
// no words for some things.
func swaggerOf(v3 map[string]any, definitions map[string]any) map[string]any {
	paths := map[string]any{}
	for path, operations := range v3["paths"].(map[string]any) {
		converted := map[string]any{}
		for method, operation := range operations.(map[string]any) {
			if method == "parameters" {
				converted[method] = parametersOf(operation)
			} else {
				converted[method] = operationOf(operation.(map[string]any))
			}
		}
		paths[path] = converted
	}
	return map[string]any{"swagger": "2.0", "info": v3["info"], "paths": paths, "definitions": definitions}
}

// operationOf converts one operation. What v3 says of each content type v2 says once.
func operationOf(v3 map[string]any) map[string]any {
	v2 := maps.Clone(v3)
	delete(v2, "requestBody")
	parameters := parametersOf(v3["parameters"])
	if body, ok := v3["requestBody"].(map[string]any); ok {
		types, schema := contentOf(body)
		v2["consumes"] = types
		parameters = append(parameters, map[string]any{"name": "body", "in": "body", "required": true,
			"schema": schema})
	}
	if len(parameters) > 0 {
		v2["parameters"] = parameters
	}
	var produces []string
	responses := map[string]any{}
	for code, response := range v3["responses"].(map[string]any) {
		response := response.(map[string]any)
		converted := map[string]any{"description": response["description"]}
		if types, schema := contentOf(response); types != nil {
			converted["schema"] = schema
			produces = append(produces, types...)
		}
		responses[code] = converted
	}
	slices.Sort(produces)
	v2["responses"], v2["produces"] = responses, slices.Compact(produces)
	return v2
}

// parametersOf puts the schema of each parameter into the parameter itself.
func parametersOf(v3 any) (v2 []any) {
	all, _ := v3.([]any)
	for _, each := range all {
		parameter := maps.Clone(each.(map[string]any))
		schema, _ := parameter["schema"].(map[string]any)
		delete(parameter, "schema")
		maps.Copy(parameter, schema)
		v2 = append(v2, parameter)
	}
	return v2
}

// contentOf returns the types in which a body is, nil if there is none, and its schema, which is the same in each.
func contentOf(v3 map[string]any) (types []string, schema map[string]any) {
	content, _ := v3["content"].(map[string]any)
	types = slices.Sorted(maps.Keys(content))
	if len(types) == 0 {
		return types, map[string]any{}
	}
	schema = maps.Clone(content[types[0]].(map[string]any)["schema"].(map[string]any))
	if ref, ok := schema["$ref"].(string); ok {
		schema["$ref"] = strings.Replace(ref, "#/components/schemas/", "#/definitions/", 1)
	}
	return types, schema
}
