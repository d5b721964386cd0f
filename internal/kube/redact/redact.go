// Package redact takes out of texts what opens doors: the values of Authorization headers and cookies, bearer tokens,
// passwords in URLs, the values of query parameters that are not the API's own, and the data of Secrets. Every
// recording, flight and export that leaves the program passes through it.
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

// Hidden stands for what was taken out.
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

// parameters are the API's own. Their values stay, for they say what was asked; none of them holds a credential. The
// parameters of exec are not among them: a command line may hold a password.
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

// Query returns a URL's query, before it is parsed, with the values of the API's own parameters alone. A parameter
// without a value is hidden whole, unless it is one of the API's.
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

// Secret hides what is known to be a Secret, several, or a piece of one, from the first data on, and the copy that
// kubectl apply keeps in an annotation. Protobuf is hidden whole: there no mark says where data begin.
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

// each applies change to each string in a tree, with the key under which it stands.
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
