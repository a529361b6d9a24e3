// Command helper does for the control plane what needs keys or TLS, so that the Rust side needs neither:
//
//	helper key FILE                          writes an EC private key (service-account tokens)
//	helper certificate DIR NAME...           writes DIR/{ca.crt,server.crt,server.key}, valid for the names
//	helper sign FILE                         signs standard input with the EC private key in the file, as cosign does: base64
//	helper wait LIMIT CA TOKEN URL           waits until the URL answers 200
//	helper request METHOD TYPE CA TOKEN URL  sends standard input, copies the answer to standard output
//	helper watch CA TOKEN URL                copies the answer to standard output as it comes, without an end
//
// It uses the standard library alone.
package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "key":
		key, err := newKey()
		if err != nil {
			return err
		}
		return writeKey(args[1], key)
	case len(args) >= 3 && args[0] == "certificate":
		return certificate(args[1], args[2:])
	case len(args) == 2 && args[0] == "sign":
		return sign(args[1], os.Stdin, os.Stdout)
	case len(args) == 5 && args[0] == "wait":
		limit, err := time.ParseDuration(args[1])
		if err != nil {
			return err
		}
		return wait(limit, args[2], args[3], args[4])
	case len(args) == 6 && args[0] == "request":
		return request(args[1], args[2], args[3], args[4], args[5])
	case len(args) == 4 && args[0] == "watch":
		c, err := client(args[1])
		if err != nil {
			return err
		}
		return send(c, 0, http.MethodGet, "application/json", args[2], args[3], nil, os.Stdout)
	}
	return errors.New("usage: helper key|certificate|sign|wait|request|watch …, see the comment at the top of its source")
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", der, 0o600)
}

func writePEM(path, kind string, der []byte, mode os.FileMode) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
}

// sign writes the signature, in DER, of the text's SHA-256, in base64.
func sign(path string, text io.Reader, out io.Writer) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return fmt.Errorf("%s: no PEM", path)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return err
	}
	ec, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return fmt.Errorf("%s: no EC key", path)
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, text); err != nil {
		return err
	}
	signature, err := ecdsa.SignASN1(rand.Reader, ec, hash.Sum(nil))
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, base64.StdEncoding.EncodeToString(signature))
	return err
}

// certificate makes an authority and one server certificate signed by it. The authority's key is thrown away.
func certificate(dir string, names []string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	caKey, err := newKey()
	if err != nil {
		return err
	}
	key, err := newKey()
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "controlplane-ca"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	leaf := &x509.Certificate{
		SerialNumber: new(big.Int).Add(serial, big.NewInt(1)), Subject: pkix.Name{CommonName: names[0]},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, name)
		}
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return err
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	if err != nil {
		return err
	}
	return errors.Join(
		writePEM(filepath.Join(dir, "ca.crt"), "CERTIFICATE", caDER, 0o644),
		writePEM(filepath.Join(dir, "server.crt"), "CERTIFICATE", leafDER, 0o644),
		writeKey(filepath.Join(dir, "server.key"), key),
	)
}

func client(ca string) (*http.Client, error) {
	pool := x509.NewCertPool()
	text, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	pool.AppendCertsFromPEM(text)
	// No proxy from the environment: the control plane is on this machine.
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}, nil
}

// send makes one request within limit (0: none) and copies the answer.
func send(c *http.Client, limit time.Duration, method, kind, token, url string, body []byte, out io.Writer) error {
	ctx := context.Background()
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", kind)
	answer, err := c.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 4096))
		return fmt.Errorf("%s %s: %s: %s", method, url, answer.Status, bytes.TrimSpace(text))
	}
	_, err = io.Copy(out, answer.Body)
	return err
}

func wait(limit time.Duration, ca, token, url string) error {
	c, err := client(ca)
	if err != nil {
		return err
	}
	end := time.Now().Add(limit)
	for {
		err := send(c, 2*time.Second, http.MethodGet, "application/json", token, url, nil, io.Discard)
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("not within %s: %w", limit, err)
		}
		time.Sleep(25 * time.Millisecond)
	}
}

func request(method, kind, ca, token, url string) error {
	c, err := client(ca)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	return send(c, time.Minute, method, kind, token, url, body, os.Stdout)
}
