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
				converted[method] = parametersOf(operation.([]any))
				continue
			}
			converted[method] = operationOf(operation.(map[string]any))
		}
		paths[path] = converted
	}
	return map[string]any{"swagger": "2.0", "info": v3["info"], "paths": paths, "definitions": definitions}
}

// operationOf converts one operation. What v3 says of each content type v2 says once.
func operationOf(v3 map[string]any) map[string]any {
	v2 := maps.Clone(v3)
	delete(v2, "requestBody")
	parameters, _ := v3["parameters"].([]any)
	parameters = parametersOf(parameters)
	if body, ok := v3["requestBody"].(map[string]any); ok {
		content := body["content"].(map[string]any)
		v2["consumes"] = slices.Sorted(maps.Keys(content))
		parameters = append(parameters, map[string]any{"name": "body", "in": "body", "required": true,
			"schema": schemaIn(content)})
	}
	if len(parameters) > 0 {
		v2["parameters"] = parameters
	}
	produces := map[string]bool{}
	responses := map[string]any{}
	for code, response := range v3["responses"].(map[string]any) {
		converted := map[string]any{"description": response.(map[string]any)["description"]}
		if content, ok := response.(map[string]any)["content"].(map[string]any); ok {
			converted["schema"] = schemaIn(content)
			for name := range content {
				produces[name] = true
			}
		}
		responses[code] = converted
	}
	v2["responses"] = responses
	v2["produces"] = slices.Sorted(maps.Keys(produces))
	return v2
}

// parametersOf puts the schema of each parameter into the parameter itself.
func parametersOf(v3 []any) []any {
	var v2 []any
	for _, each := range v3 {
		parameter := maps.Clone(each.(map[string]any))
		if schema, ok := parameter["schema"].(map[string]any); ok {
			delete(parameter, "schema")
			maps.Copy(parameter, schema)
		}
		v2 = append(v2, parameter)
	}
	return v2
}

// schemaIn returns the schema of a content, which is the same for each type.
func schemaIn(content map[string]any) map[string]any {
	for _, name := range slices.Sorted(maps.Keys(content)) {
		schema := maps.Clone(content[name].(map[string]any)["schema"].(map[string]any))
		if ref, ok := schema["$ref"].(string); ok {
			schema["$ref"] = strings.Replace(ref, "#/components/schemas/", "#/definitions/", 1)
		}
		return schema
	}
	return map[string]any{}
}
