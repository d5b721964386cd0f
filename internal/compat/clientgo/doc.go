// Package clientgo holds the program to what the real client-go, at the version this project is compared with, expects of
// an API server, over real HTTP and with the program as a process of its own:
//
//   - informers_test.go: reflectors and informers of every make end equal to what is stored, under churn;
//   - clients_test.go: the typed, the dynamic and the metadata client, paging, and races between writers;
//   - script_test.go: our informer and client-go's, side by side on one server, tell the same story;
//   - errors_test.go, options_test.go: every error a client can meet, and what every combination of options means;
//   - bench_test.go: our handlers beside upstream's, over the same storage.
//
// Everything is in test files: nothing here is for anybody to import.
package clientgo
