package program

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"listwatch/internal/check/require"
)

// StartKubeAPIServer starts the real kube-apiserver on an etcd, for as long as the test runs, and returns what leads a
// kubectl there. It is ready soon.
func StartKubeAPIServer(tb testing.TB, etcd *Etcd) (kubectlFlags []string) {
	tb.Helper()
	const token = "s3cret"
	dir := tb.TempDir()
	tokens := filepath.Join(dir, "tokens")
	key := filepath.Join(dir, "apiserver.key") // of the certificate that it makes: no token that it signs is used
	require.NoError(tb, os.WriteFile(tokens, []byte(token+",admin,admin,system:masters\n"), 0o600))
	free, err := net.Listen("tcp", "127.0.0.1:0") // it wants a number
	require.NoError(tb, err)
	address := free.Addr().String()
	free.Close()
	_, port, _ := strings.Cut(address, ":")
	server := Start(tb, exec.Command(BuildOf(tb, "../kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
		"--etcd-servers=http://"+etcd.Endpoint, "--bind-address=127.0.0.1", "--secure-port="+port, "--cert-dir="+dir,
		"--token-auth-file="+tokens, "--authorization-mode=RBAC",
		"--service-account-key-file="+key, "--service-account-signing-key-file="+key,
		"--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.0.0.0/24",
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
