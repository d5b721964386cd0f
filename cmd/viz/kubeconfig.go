package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// kubeconfigMark begins each kubeconfig of ours. A program that changes the file, such as kubectl config, leaves it
// out: the file may hold what is not ours from then on.
const kubeconfigMark = "# Written by listwatch -kubeconfig\n"

// writeKubeconfig writes a kubeconfig for the server at url. The JavaScript client refuses http unless certificate
// checks are off.
func writeKubeconfig(name, url string) error {
	file, err := createOurs(name, func(old io.Reader) bool {
		head := make([]byte, len(kubeconfigMark))
		_, err := io.ReadFull(old, head)
		return err == nil && bytes.Equal(head, []byte(kubeconfigMark))
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, kubeconfigMark+`apiVersion: v1
kind: Config
current-context: listwatch
clusters:
- name: listwatch
  cluster: {server: %q, insecure-skip-tls-verify: true}
contexts:
- name: listwatch
  context: {cluster: listwatch, user: listwatch}
users:
- name: listwatch
  user: {}
`, url)
	return errors.Join(err, file.Close())
}
