package etcdnode

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
)

// TLSFiles name what one needs to talk to an etcd that asks its clients for a certificate. Empty: no TLS.
type TLSFiles struct {
	CACert, Cert, Key string
}

// clientTLS returns nil if no file is named.
func (f TLSFiles) clientTLS() (*tls.Config, error) {
	if f == (TLSFiles{}) {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CACert != "" {
		text, err := os.ReadFile(f.CACert)
		if err != nil {
			return nil, fmt.Errorf("read the certificate of etcd's authority: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s holds no certificate", f.CACert)
		}
	}
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fmt.Errorf("read the certificate for etcd: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// identity is what the members of a cluster and its clients know each other by: one certificate of an authority that
// signs nothing else. It is valid on loopback only.
type identity struct {
	files TLSFiles
	tls   *tls.Config // of a client; a server's is made from it
}

// identityLife is longer than any workshop, and makes a forgotten key worthless.
const identityLife = 30 * 24 * time.Hour

// newIdentity makes one and writes its files into dir, readable for this user only. Each start makes new ones: the
// members learn them together.
func newIdentity(dir string) (*identity, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	ca := template("listwatch etcd authority", 1)
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	leaf := template("listwatch etcd", 2)
	leaf.KeyUsage = x509.KeyUsageDigitalSignature
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	leaf.IPAddresses, leaf.DNSNames = []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"}
	caText, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	leafText, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	keyText, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	files := TLSFiles{CACert: filepath.Join(dir, "ca.crt"), Cert: filepath.Join(dir, "etcd.crt"), Key: filepath.Join(dir, "etcd.key")}
	for _, each := range []struct {
		file, kind string
		text       []byte
	}{{files.CACert, "CERTIFICATE", caText}, {files.Cert, "CERTIFICATE", leafText}, {files.Key, "PRIVATE KEY", keyText}} {
		if err := os.WriteFile(each.file, pem.EncodeToMemory(&pem.Block{Type: each.kind, Bytes: each.text}), 0o600); err != nil {
			return nil, fmt.Errorf("write etcd's certificates: %w", err)
		}
	}
	client, err := files.clientTLS()
	return &identity{files: files, tls: client}, err
}

func template(name string, serial int64) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(identityLife),
	}
}

// serverTLS asks clients for a certificate of the same authority.
func (i *identity) serverTLS() *tls.Config {
	c := i.tls.Clone()
	c.ClientCAs, c.ClientAuth = c.RootCAs, tls.RequireAndVerifyClientCert
	c.NextProtos = []string{"h2", "http/1.1"}
	return c
}

// peerTLS is the same in etcd's words.
func (i *identity) peerTLS() transport.TLSInfo {
	return transport.TLSInfo{CertFile: i.files.Cert, KeyFile: i.files.Key, TrustedCAFile: i.files.CACert, ClientCertAuth: true}
}
