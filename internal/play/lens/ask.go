package lens

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"listwatch/internal/kube/redact"
	"listwatch/internal/observe/probe"
)

// Ask is a parsed request. Of the headers it holds only the user agent, and so no credentials. Its texts have at most
// 200 bytes.
type Ask struct {
	Client                       string // the user agent
	Method                       string
	Resource                     string // "pods", "deployments.apps"; "" if the path is none of the API's
	Namespace, Name, Subresource string
	Labels, Fields               string
	Version                      string
	Continue, Watch              bool
	Bookmarks, InitialEvents     bool
}

const (
	maxText   = 200         // bytes that are kept of a client's text
	maxRedact = 4 * maxText // bytes that are searched for secrets
)

// bound returns the beginning of a text, without secrets, as a copy.
func bound(text string) string {
	text = redact.Text(text[:min(len(text), maxRedact)])
	return strings.ToValidUTF8(strings.Clone(text[:min(len(text), maxText)]), "")
}

// newAsk parses a request as a kube-apiserver does.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/request/requestinfo.go: (*RequestInfoFactory).NewRequestInfo
func newAsk(r *http.Request) Ask {
	query, options := r.URL.Query(), metav1.ListOptions{}
	_ = metav1.Convert_url_Values_To_v1_ListOptions(&query, &options, nil) // the server refuses the same queries
	ask := askPath(r.URL.Path)
	ask.Client, ask.Method = bound(r.UserAgent()), bound(r.Method)
	ask.Labels, ask.Fields = bound(options.LabelSelector), bound(options.FieldSelector)
	ask.Version, ask.Continue = bound(options.ResourceVersion), options.Continue != ""
	ask.Watch = ask.Watch || ask.Name == "" && options.Watch
	ask.Bookmarks, ask.InitialEvents = options.AllowWatchBookmarks, ptr.Deref(options.SendInitialEvents, false)
	return ask
}

// askPath reads /api/v1/… and /apis/GROUP/VERSION/….
func askPath(path string) (ask Ask) {
	parts := slices.DeleteFunc(strings.Split(path, "/"), func(part string) bool { return part == "" })
	group := ""
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = "."+parts[1], parts[3:]
	default:
		return ask
	}
	if parts[0] == "watch" { // the path of a watch before 1.11
		ask.Watch, parts = true, parts[1:]
	}
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		ask.Namespace, parts = bound(parts[1]), parts[2:]
	}
	for i, field := range []*string{&ask.Resource, &ask.Name, &ask.Subresource} {
		if i < len(parts) {
			*field = bound(parts[i])
		}
	}
	if ask.Resource != "" {
		ask.Resource += bound(group)
	}
	return ask
}

// reads reports whether it is a GET of a collection: a list or a watch.
func (a *Ask) reads() bool {
	return a.Method == http.MethodGet && a.Resource != "" && (a.Watch || a.Name == "")
}

// state reports whether it reads the whole state: the first page of a list, or a watch-list.
func (a *Ask) state() bool { return a.reads() && !a.Continue && (!a.Watch || a.InitialEvents) }

// resumes reports whether it is a watch that begins at a version.
func (a *Ask) resumes() bool { return a.Watch && !a.InitialEvents }

// writes reports whether it changes an object.
func (a *Ask) writes() bool {
	return a.Resource != "" && a.Name != "" && a.Method != http.MethodGet && a.Method != http.MethodHead &&
		a.Method != http.MethodOptions
}

// trail is the key of a [trail]: requests of one informer have the same.
func (a *Ask) trail() string {
	return strings.Join([]string{a.Client, a.Resource, a.Namespace, a.Labels, a.Fields}, "\x00")
}

// plural is the resource without its group, its name in our client half.
func (a *Ask) plural() string {
	name, _, _ := strings.Cut(a.Resource, ".")
	return name
}

// what returns the resource, namespace and selectors in words.
func (a *Ask) what() string {
	text := a.Resource
	if a.Namespace != "" {
		text += " in " + a.Namespace
	}
	if selector := strings.Trim(a.Labels+","+a.Fields, ","); selector != "" {
		text += " with " + selector
	}
	return text
}

// short is a client's name in sentences.
func short(client string) string {
	return cmp.Or(probe.AgentOf(client), "a client without a user agent")
}
