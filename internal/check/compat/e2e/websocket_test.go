package e2e

import "testing"

// TestAPageWatchesOverAWebsocket opens one as consoles do: with a token, which only a subprotocol can carry. A browser
// fails unless the answer names the other subprotocol.
func TestAPageWatchesOverAWebsocket(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false")
	p := openPage(t, v.URL)
	p.is(t, `base64.binary.k8s.io ADDED default`, "the first message", `await new Promise((resolve, reject) => {
		const socket = new WebSocket("/api/v1/namespaces?watch=1&timeoutSeconds=5",
			["base64url.bearer.authorization.k8s.io.dG9rZW4", "base64.binary.k8s.io"]);
		socket.onmessage = ({ data }) => {
			const event = JSON.parse(data);
			resolve([socket.protocol, event.type, event.object.metadata.name].join(" "));
			socket.close();
		};
		socket.onerror = () => reject(new Error("the browser gave up"));
	})`)
}
