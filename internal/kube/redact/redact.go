// Package redact removes secrets from texts: the values of Authorization headers and cookies, bearer tokens, passwords
// in URLs, the values of query parameters that are not the API's own, and the data of Secrets. The program passes
// every recording, flight and export through it.
//
// Everything here is a pure function.
package redact

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Hidden replaces each secret.
const Hidden = "***"

var (
	headers = regexp.MustCompile(`(?i)((?:proxy-)?authorization|(?:set-)?cookie)([ \t]*:[ \t]*)[^\r\n]+`)
	tokens  = regexp.MustCompile(`(?i)(bearer |base64url\.bearer\.authorization\.k8s\.io\.)[^\s"'&,]+`)
	users   = regexp.MustCompile(`://[^\s"'/?@]+@`)
	queries = regexp.MustCompile(`(/[^\s"'?]*\?)([^\s"']+)`)
	secrets = regexp.MustCompile(`\\*"kind\\*"\s*:\s*\\*"Secret(?:List)?\\*"|(?s:k8s\x00.{0,24}Secret)`)
	fields  = regexp.MustCompile(
		`\\*"(?:data|stringData|kubectl\.kubernetes\.io/last-applied-configuration)\\*"\s*:\s*`)
)

// parameters are the API's own whose values stay, because none of them holds a credential. Those of exec are left out:
// a command line may hold a password.
var parameters = sets.New(
	"allowWatchBookmarks", "continue", "dryRun", "fieldManager", "fieldSelector", "fieldValidation", "follow",
	"force", "gracePeriodSeconds", "includeObject", "labelSelector", "limit", "orphanDependents", "pretty",
	"previous", "propagationPolicy", "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "sinceSeconds",
	"tailLines", "timeout", "timeoutSeconds", "timestamps", "watch",
)

// Text returns a text without its secrets: the head of a request, a body or a piece of one, or a line that names a URL.
func Text(text string) string {
	if !strings.ContainsAny(text, ":= .\x00?") {
		return text
	}
	text = headers.ReplaceAllString(text, "$1$2"+Hidden)
	text = tokens.ReplaceAllString(text, "$1"+Hidden)
	text = users.ReplaceAllString(text, "://"+Hidden+"@")
	text = queries.ReplaceAllStringFunc(text, func(url string) string {
		path, query, _ := strings.Cut(url, "?")
		return path + "?" + Query(query)
	})
	if !secrets.MatchString(text) {
		return text
	}
	return Secret(text)
}

// Query returns a URL's raw query with the values of all parameters hidden but the API's own. A parameter without a
// value is hidden whole, unless it is one of the API's.
func Query(raw string) string {
	pairs := strings.Split(raw, "&")
	for i, pair := range pairs {
		name, _, hasValue := strings.Cut(pair, "=")
		switch {
		case pair == "" || parameters.Has(name):
		case hasValue:
			pairs[i] = name + "=" + Hidden
		default:
			pairs[i] = Hidden
		}
	}
	return strings.Join(pairs, "&")
}

// Secret hides the data of Secrets, whole or in pieces, and the copy that
// kubectl apply keeps in an annotation. Protobuf is hidden whole, because no mark shows where its data begin.
func Secret(text string) string {
	if strings.HasPrefix(text, "k8s\x00") {
		return Hidden
	}
	if at := fields.FindStringIndex(text); at != nil {
		return text[:at[1]] + Hidden
	}
	return text
}

// JSON returns a JSON value with [Text] applied to each of its strings, [Query] to what is called "query", and "" for
// what is not JSON.
func JSON(written []byte) json.RawMessage {
	return changed(written, func(key, text string) string {
		if key == "query" {
			return Query(text)
		}
		return Text(text)
	})
}

// Stream is [JSON] for a connection on which Secrets travel. It hides each piece that came ("data") whole: a Secret may
// begin in one piece and end in another.
func Stream(written []byte) json.RawMessage {
	return changed(written, func(key, text string) string {
		if key == "data" {
			return Hidden
		}
		return Text(text)
	})
}

func changed(written []byte, change func(key, text string) string) json.RawMessage {
	var tree any
	decoder := json.NewDecoder(strings.NewReader(string(written)))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return json.RawMessage(`""`)
	}
	out, err := json.Marshal(each("", tree, change))
	if err != nil {
		panic(fmt.Sprintf("redact: own JSON: %v", err))
	}
	return out
}

// each applies change to each string in a tree, with the string's key.
func each(key string, tree any, change func(key, text string) string) any {
	switch value := tree.(type) {
	case string:
		return change(key, value)
	case []any:
		for i := range value {
			value[i] = each(key, value[i], change)
		}
	case map[string]any:
		for key := range value {
			value[key] = each(key, value[key], change)
		}
	}
	return tree
}
