// Package sidebyside compares this project with the code that it rewrites: k8s.io/apiserver and client-go, at the
// versions in go.mod.
//
// Our server half and apiserver's run over one embedded etcd and the same keys, or over equal streams of events. In
// watches, lists and gets of all variants, both must agree on the types and order of events, names, resource versions,
// bookmarks, status codes and reasons, and the versions at which watches can start. Comments at the comparisons name
// the intended differences. Tests also compare keys, the Accept header, and metrics' names and labels.
//
// Our informer and client-go's follow the same server through the same story. Their requests, handler calls and stores
// must be the same. normalize lists the intended differences.
//
// The benchmarks measure both sides in the same run; benchstat -col /side prints them next to each other. Everything is
// in test files: no package imports this one.
package sidebyside
