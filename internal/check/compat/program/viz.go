package program

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"listwatch/internal/check/require"
)

// HangsAfter limits each wait for a process. It is far more than a busy machine needs: it finds hangs, not slowness.
const HangsAfter = 5 * time.Minute

// Viz is a running cmd/viz.
type Viz struct {
	*Process
	URL string // http://127.0.0.1:PORT
	Tmp string // the folder for its temporary files
}

// VizCommand returns the command that runs cmd/viz with flags, not yet started, and the folder for its temporary files.
func VizCommand(tb testing.TB, flags ...string) (*exec.Cmd, string) {
	tb.Helper()
	tmp := tb.TempDir()
	cmd := exec.Command(require.Value(vizBinary())(tb), flags...)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "TMP="+tmp, "TEMP="+tmp)
	return cmd, tmp
}

// StartViz starts the program on a free port of loopback, and returns after the program's ready line.
func StartViz(tb testing.TB, flags ...string) *Viz {
	tb.Helper()
	cmd, tmp := VizCommand(tb, append([]string{"-listen", "127.0.0.1:0"}, flags...)...)
	v := &Viz{Process: Start(tb, cmd), Tmp: tmp}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("viz wrote to stderr:\n%s", v.Stderr.String())
		}
	})
	Eventually(tb, HangsAfter, func() (bool, string) { return v.ready(tb) })
	return v
}

// ready reports whether stdout has the ready line, and sets URL from that line. It fails the test if the program ended.
func (v *Viz) ready(tb testing.TB) (bool, string) {
	tb.Helper()
	select {
	case <-v.Done:
		tb.Fatalf("the program ended before it was ready: %v\n%s", v.Cmd.ProcessState, v.Stderr.String())
	default:
	}
	for _, line := range v.Stdout.Lines() {
		if url, ok := strings.CutPrefix(line, "listening on "); ok {
			v.URL = url
			return true, line
		}
	}
	return false, "stdout:\n" + v.Stdout.String() + "stderr:\n" + v.Stderr.String()
}

// Get requests one of the program's paths and decodes the response's JSON to *into. It fails the test without a 200.
func (v *Viz) Get(tb testing.TB, path string, into any) {
	tb.Helper()
	response := require.Value((&http.Client{Timeout: HangsAfter}).Get(v.URL + path))(tb)
	defer response.Body.Close()
	require.True(tb, response.StatusCode == http.StatusOK, "GET %s: %s", path, response.Status)
	require.NoError(tb, json.NewDecoder(response.Body).Decode(into), "GET %s", path)
}

// Points returns the number of records of each point, over all resources.
func (v *Viz) Points(tb testing.TB) map[string]int {
	tb.Helper()
	var snapshot struct {
		State struct {
			Resources map[string]struct{ Points map[string]int }
		}
	}
	v.Get(tb, "/viz/snapshot", &snapshot)
	sum := map[string]int{}
	for _, resource := range snapshot.State.Resources {
		for point, n := range resource.Points {
			sum[point] += n
		}
	}
	return sum
}

// Etcd is a real etcd with a port, so that several processes can use it.
type Etcd struct {
	Client   *clientv3.Client
	Endpoint string // 127.0.0.1:PORT
}

// StartEtcd starts an etcd in this process and waits until the etcd is ready. The test's cleanup ends it.
func StartEtcd(tb testing.TB) *Etcd {
	tb.Helper()
	config := embed.NewConfig()
	config.Dir = tb.TempDir()
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	anyPort := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{anyPort}, []url.URL{anyPort}
	config.ListenPeerUrls, config.AdvertisePeerUrls = nil, []url.URL{anyPort}
	config.InitialCluster = config.Name + "=" + anyPort.String()
	config.UnsafeNoFsync = true
	config.TickMs, config.ElectionMs = 10, 50
	etcd := require.Value(embed.StartEtcd(config))(tb)
	tb.Cleanup(etcd.Close)
	select {
	case <-etcd.Server.ReadyNotify():
	case <-time.After(HangsAfter):
		tb.Fatal("etcd is not ready")
	}
	endpoint := etcd.Clients[0].Addr().String()
	client := require.Value(clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()}))(tb)
	tb.Cleanup(func() { _ = client.Close() })
	return &Etcd{Client: client, Endpoint: endpoint}
}

// StartKubeAPIServer starts the real kube-apiserver on an etcd and returns the flags for kubectl. The caller must wait
// until the server is ready. The server ends with the test.
func StartKubeAPIServer(tb testing.TB, etcd *Etcd) (kubectlFlags []string) {
	tb.Helper()
	const token = "s3cret"
	dir := tb.TempDir()
	tokens := filepath.Join(dir, "tokens")
	key := filepath.Join(dir, "apiserver.key") // the certificate's key, reused to sign tokens that no test uses
	require.NoError(tb, os.WriteFile(tokens, []byte(token+",admin,admin,system:masters\n"), 0o600))
	free := require.Value(net.Listen("tcp", "127.0.0.1:0"))(tb) // kube-apiserver needs a port number
	address := free.Addr().String()
	free.Close()
	_, port, _ := strings.Cut(address, ":")
	server := Start(tb, exec.Command(BuildOf(tb, "../kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
		"--etcd-servers=http://"+etcd.Endpoint, "--bind-address=127.0.0.1", "--secure-port="+port, "--cert-dir="+dir,
		"--token-auth-file="+tokens, "--authorization-mode=RBAC",
		"--service-account-key-file="+key, "--service-account-signing-key-file="+key,
		"--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.0.0.0/24",
		// No controller here creates the service accounts that the first needs, or removes the second's taints.
		"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"))
	tb.Cleanup(func() {
		if tb.Failed() {
			log := server.Stderr.Lines()
			tb.Logf("kube-apiserver wrote to stderr:\n%s", strings.Join(log[max(0, len(log)-30):], "\n"))
		}
	})
	return []string{"-s", "https://" + address, "--insecure-skip-tls-verify", "--token=" + token}
}
