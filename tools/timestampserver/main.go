// Command timestampserver is sigstore's timestamp-authority with a key in memory, for tests. Its own program also
// takes the port 2112 for metrics, so that a machine has only one. It listens on a free port of
// 127.0.0.1, prints the address that takes requests, and ends with its standard input.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/sigstore/timestamp-authority/v2/pkg/server"
	"github.com/spf13/viper"
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve() error {
	const policy = "1.3.6.1.4.1.57264.2" // sigstore's, the default of its program
	for key, value := range map[string]any{
		"timestamp-signer": "memory", "timestamp-signer-hash": "sha256", "default-policy-oid": policy,
		"accepted-policy-oids": []string{policy}, "max-request-body-size": 1 << 20,
	} {
		viper.Set(key, value)
	}
	s := server.NewRestAPIServer("127.0.0.1", 0, []string{"http"}, false, 10*time.Second, 10*time.Second)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/api/v1/timestamp\n", listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return (&http.Server{Handler: s.GetHandler(), ReadHeaderTimeout: 10 * time.Second}).Serve(listener)
}
