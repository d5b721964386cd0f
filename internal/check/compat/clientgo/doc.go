// Package clientgo holds the program to what the real client-go, at the version this project is compared with, expects of
// an API server, over real HTTP and with the program as a process of its own:
//
//   - informers_test.go: reflectors and informers of every make end equal to what is stored, under churn;
//   - clients_test.go: the typed, the dynamic and the metadata client;
//   - errors_test.go: every error a client can meet;
//   - metrics_test.go: the names and labels of metrics;
//   - bench_test.go: our handlers beside upstream's, over the same storage.
//
// What a watch begins with is compared in package server, what informers do in package client; package storm has pages
// that are one moment, and writers that lose no update.
//
// Everything is in test files: no package imports this one.
package clientgo
