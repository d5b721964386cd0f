package program

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"listwatch/internal/check/require"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// keyBits of the key that signs the tokens of service accounts, which are not used.
const keyBits = 2048

// StartKubeAPIServer starts the real kube-apiserver on an etcd, for as long as the test runs, and returns what leads a
// kubectl there. It is ready soon.
func StartKubeAPIServer(tb testing.TB, etcd *Etcd) (kubectlFlags []string) {
	tb.Helper()
	const token = "s3cret"
	dir := tb.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(tb, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	require.NoError(tb, err)
	keyFile := file("key", string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY",
		Bytes: x509.MarshalPKCS1PrivateKey(key)})))
	free, err := net.Listen("tcp", "127.0.0.1:0") // it wants a number
	require.NoError(tb, err)
	address := free.Addr().String()
	free.Close()
	_, port, _ := strings.Cut(address, ":")
	server := Start(tb, exec.Command(built(tb, apiserverBinary),
		"--etcd-servers=http://"+etcd.Endpoint, "--bind-address=127.0.0.1", "--secure-port="+port, "--cert-dir="+dir,
		"--token-auth-file="+file("tokens", token+",admin,admin,system:masters\n"), "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+keyFile,
		"--service-account-signing-key-file="+keyFile,
		"--service-cluster-ip-range=10.0.0.0/24",
		// no controller here makes the service accounts that the one wants, or removes the taints that the other sets
		"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"))
	tb.Cleanup(func() {
		if tb.Failed() {
			log := server.Stderr.Lines()
			tb.Logf("kube-apiserver wrote to stderr:\n%s", strings.Join(log[max(0, len(log)-30):], "\n"))
		}
	})
	return []string{"-s", "https://" + address, "--insecure-skip-tls-verify", "--token=" + token}
}
