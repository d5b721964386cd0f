// Package redact takes out of texts what opens doors: the values of Authorization headers and cookies, bearer tokens, and the data of
// Secrets. Whatever leaves the program as a recording, a flight or an export goes through here.
//
// Everything here is a pure function.
package redact

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Hidden stands for what was taken out.
const Hidden = "***"

var (
	headers = regexp.MustCompile(`(?i)((?:proxy-)?authorization|(?:set-)?cookie)([ \t]*:[ \t]*)[^\r\n]+`)
	tokens  = regexp.MustCompile(`(?i)(bearer |base64url\.bearer\.authorization\.k8s\.io\.|[?&](?:access_)?token=)[^\s"'&,]+`)
	secrets = regexp.MustCompile(`\\*"kind\\*"\s*:\s*\\*"Secret(?:List)?\\*"|(?s:k8s\x00.{0,24}Secret)`)
	fields  = regexp.MustCompile(`(\\*)"(?:data|stringData|kubectl\.kubernetes\.io/last-applied-configuration)\\*"\s*:\s*`)
)

// Text masks a text: the head of a request, a body or a piece of one, a line that names a URL.
func Text(text string) string {
	if !strings.ContainsAny(text, ":= .\x00") {
		return text
	}
	text = headers.ReplaceAllString(text, "$1$2"+Hidden)
	text = tokens.ReplaceAllString(text, "$1"+Hidden)
	if !secrets.MatchString(text) {
		return text
	}
	return Secret(text)
}

// Query masks a URL's query, before it is parsed: the values of parameters that are likely to be secret, judged by their names.
func Query(raw string) string {
	parameters := strings.Split(raw, "&")
	for i, parameter := range parameters {
		name, _, _ := strings.Cut(parameter, "=")
		if isCredential(name) {
			parameters[i] = name + "=(masked)"
		}
	}
	return strings.Join(parameters, "&")
}

func isCredential(name string) bool {
	plain, err := url.QueryUnescape(name)
	if err != nil {
		return true // it cannot be told
	}
	plain = strings.ToLower(plain)
	for _, word := range []string{"token", "secret", "password", "authorization", "apikey", "api_key", "signature"} {
		if strings.Contains(plain, word) {
			return true
		}
	}
	return false
}

// Secret masks what is known to be a Secret, several, or a piece of one: every value of data and stringData, also where kubectl has
// noted the object once more.
func Secret(text string) string {
	if strings.HasPrefix(text, "k8s\x00") {
		return Hidden // protobuf: there is no telling where its data begin
	}
	var out strings.Builder
	for {
		at := fields.FindStringSubmatchIndex(text)
		if at == nil {
			out.WriteString(text)
			return out.String()
		}
		quote := text[at[2]:at[3]] + `"`
		out.WriteString(text[:at[1]])
		out.WriteString(quote + Hidden + quote)
		text = text[at[1]+valueEnd(text[at[1]:], quote):]
	}
}

// valueEnd returns where a JSON value ends that begins the text: a string, or an object of strings; all of the text if it is cut off.
func valueEnd(text, quote string) int {
	if strings.HasPrefix(text, "null") {
		return len("null")
	}
	depth := 0
	for i := 0; i < len(text); {
		switch {
		case strings.HasPrefix(text[i:], quote):
			n := stringEnd(text[i+len(quote):], quote)
			if n < 0 {
				return len(text)
			}
			i += len(quote) + n
			if depth == 0 {
				return i
			}
			continue
		case text[i] == '{':
			depth++
		case text[i] == '}':
			if depth--; depth <= 0 {
				return i + 1
			}
		}
		i++
	}
	return len(text)
}

// stringEnd returns the length of a string's rest with its closing quote; -1 if it has none. Quotes within it have more backslashes.
func stringEnd(text, quote string) int {
	for i := 0; ; {
		n := strings.Index(text[i:], `"`)
		if n < 0 {
			return -1
		}
		i += n
		slashes := 0
		for slashes < i && text[i-1-slashes] == '\\' {
			slashes++
		}
		i++
		if slashes == len(quote)-1 {
			return i
		}
	}
}

// JSON masks every text in a JSON value. What is not JSON is an empty text.
func JSON(written []byte) json.RawMessage {
	return changed(written, func(_, text string) string { return Text(text) })
}

// Stream is JSON of a connection on which Secrets travel: of the pieces that came ("data") nothing is left, for one may begin anywhere.
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

// each applies change to every text in a tree, with the key under which it stands.
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
