package main

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

func TestAKubeconfigNamesTheServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	o := &options{listen: "127.0.0.1:0", kubeconfig: filepath.Join(t.TempDir(), "config")}
	announce(o, listener, io.Discard, io.Discard)
	text, err := os.ReadFile(o.kubeconfig)
	require.NoError(t, err)
	var config struct {
		Kind     string
		Clusters []struct{ Cluster struct{ Server string } }
	}
	require.NoError(t, yaml.Unmarshal(text, &config))
	assert.Equal(t, config.Kind, "Config")
	assert.Equal(t, config.Clusters[0].Cluster.Server, "http://"+listener.Addr().String())
}
