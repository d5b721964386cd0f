// Package redact removes secrets from texts: the values of Authorization headers and cookies, bearer tokens, passwords
// in URLs, the values of query parameters outside the API, and the data of Secrets. The program applies it to each
// recording that it saves or sends, to each query in the log, and to each text of a client in the lens.
//
// All functions are pure.
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

// parameters are the API's query parameters whose values stay visible, because none of them holds a credential. The
// parameters of exec are not among them: a command line may hold a password.
var parameters = sets.New(
	"allowWatchBookmarks", "continue", "dryRun", "fieldManager", "fieldSelector", "fieldValidation", "follow",
	"force", "gracePeriodSeconds", "includeObject", "labelSelector", "limit", "orphanDependents", "pretty",
	"previous", "propagationPolicy", "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "sinceSeconds",
	"tailLines", "timeout", "timeoutSeconds", "timestamps", "watch",
)

// Text returns a text without its secrets. The text may be a request's head, a body or a piece of one, or a line with a
// URL.
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

// Query returns a URL's raw query with the values of all parameters hidden, except for the API's. It hides a parameter
// without a value as a whole, unless it is one of the API's.
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

// Secret hides the text from the first field of a Secret's data on, or from the copy of the object that kubectl apply
// keeps in an annotation. It hides protobuf completely, because nothing marks the beginning of the data.
func Secret(text string) string {
	if strings.HasPrefix(text, "k8s\x00") {
		return Hidden
	}
	if at := fields.FindStringIndex(text); at != nil {
		return text[:at[1]] + Hidden
	}
	return text
}

// JSON returns a JSON value with [Query] applied to the strings named "query", and [Text] to all others. For malformed
// JSON it returns an empty JSON string.
func JSON(written []byte) json.RawMessage {
	var tree any
	decoder := json.NewDecoder(strings.NewReader(string(written)))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return json.RawMessage(`""`)
	}
	out, err := json.Marshal(each("", tree))
	if err != nil {
		panic(fmt.Sprintf("redact: own JSON: %v", err))
	}
	return out
}

// each redacts each string in a tree. key is the name of the tree in its parent.
func each(key string, tree any) any {
	switch value := tree.(type) {
	case string:
		if key == "query" {
			return Query(value)
		}
		return Text(value)
	case []any:
		for i := range value {
			value[i] = each(key, value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = each(key, value[key])
		}
	}
	return tree
}
