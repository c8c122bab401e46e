//go:build cgo

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	rt "github.com/yalue/onnxruntime_go"
)

// version is the version of this server, which GET /v2 reports.
const version = "0.1.0"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends. It then answers the requests that have begun, for ten seconds at most.
func run(ctx context.Context, args []string, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("model", "model.onnx", "ONNX `file` to serve")
	name := flags.String("name", "m", "name of the model in addresses")
	address := flags.String("http", "127.0.0.1:8080", "`address` to listen on; port 0 takes a free one")
	library := flags.String("library", "", "shared library of ONNX Runtime, libonnxruntime.so.`VERSION`")
	maxBytes := flags.Int64("max-bytes", 64<<20, "most bytes of a request")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *library == "" || flags.NArg() > 0 {
		return errors.New("want -library with the path of libonnxruntime.so, and flags alone")
	}
	rt.SetSharedLibraryPath(*library)
	if err := rt.InitializeEnvironment(rt.WithLogLevelError()); err != nil {
		return fmt.Errorf("load %s: %w", *library, err)
	}
	defer func() { err = errors.Join(err, rt.DestroyEnvironment()) }()
	m, err := open(*path, *name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *address)
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "serve: %s as model %s on http://%s\n", *path, *name, listener.Addr())
	return serve(ctx, listener, newHandler(m, *maxBytes))
}

// serve handles requests until ctx ends.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute,
		WriteTimeout: 2 * time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return server.Shutdown(limit)
}
