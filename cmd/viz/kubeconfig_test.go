package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

func TestAKubeconfigNamesTheServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	p := start(t, "-demo=false", "-controllers=false", "-flight=off", "-kubeconfig", file)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var config struct {
		Kind     string
		Clusters []struct{ Cluster struct{ Server string } }
	}
	require.NoError(t, yaml.Unmarshal(text, &config))
	assert.Equal(t, config.Kind, "Config")
	assert.Equal(t, config.Clusters[0].Cluster.Server, p.url)
}

func TestAKubeconfigThatCannotBeWrittenEndsTheProgram(t *testing.T) {
	var stderr strings.Builder
	file := filepath.Join(t.TempDir(), "no", "config")
	status := run(t.Context(), []string{"-listen", "127.0.0.1:0", "-kubeconfig", file}, io.Discard, &stderr)
	if status != exitError || !strings.Contains(stderr.String(), "-kubeconfig: open "+file) {
		t.Errorf("got status %d, %q", status, stderr.String())
	}
}
