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
	"path/filepath"
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
	addressGRPC := flags.String("grpc", "", "`address` to listen on for gRPC; none without it")
	library := flags.String("library", "", "shared library of ONNX Runtime (default libonnxruntime.so in the folder of this program)")
	maxBytes := flags.Int64("max-bytes", 64<<20, "most bytes of a request")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("argument %q: want flags alone", flags.Arg(0))
	}
	if *library == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		*library = filepath.Join(filepath.Dir(self), "libonnxruntime.so")
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
	h := newHandler(m, *maxBytes)
	return serve(ctx, h, *address, *addressGRPC, stderr)
}

// serve handles requests until ctx ends.
func serve(ctx context.Context, h *handler, address, addressGRPC string, stderr io.Writer) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h.routes(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute,
		WriteTimeout: 2 * time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	ended := make(chan error, 2)
	told := fmt.Sprintf("serve: model %s on http://%s", h.model.name, listener.Addr())
	remote := h.grpcServer()
	defer remote.Stop()
	if addressGRPC != "" {
		other, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addressGRPC)
		if err != nil {
			return err
		}
		told += fmt.Sprintf(" and grpc://%s", other.Addr())
		go func() { ended <- remote.Serve(other) }()
	}
	go func() { ended <- server.Serve(listener) }()
	fmt.Fprintln(stderr, told)
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	defer context.AfterFunc(limit, remote.Stop)()
	remote.GracefulStop()
	return server.Shutdown(limit)
}
