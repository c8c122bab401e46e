// Command vaultserver is the transit engine of HashiCorp Vault with keys in memory, for tests. It answers the
// paths below /v1/transit/ as Vault does, for one token. Vault's own program has more than ten times the code, none of
// which signs. It listens on a free port of 127.0.0.1, prints the address and the token, and ends with its standard input.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/vault/builtin/logical/transit"
	"github.com/hashicorp/vault/sdk/logical"
)

func main() {
	if err := serve(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context) error {
	storage := &logical.InmemStorage{}
	engine, err := transit.Factory(ctx, &logical.BackendConfig{StorageView: storage, System: logical.TestSystemView(), Config: map[string]string{}})
	if err != nil {
		return err
	}
	if err := engine.Initialize(ctx, &logical.InitializationRequest{Storage: storage}); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := server{engine, storage, rand.Text()}
	fmt.Printf("http://%s %s\n", listener.Addr(), s.token)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return (&http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}).Serve(listener)
}

type server struct {
	engine  logical.Backend
	storage logical.Storage
	token   string
}

// ServeHTTP asks the engine, and answers in Vault's form.
func (s server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, known := strings.CutPrefix(r.URL.Path, "/v1/transit/")
	switch {
	case r.Header.Get("X-Vault-Token") != s.token:
		answer(w, http.StatusForbidden, map[string]any{"errors": []string{"permission denied"}})
		return
	case !known:
		answer(w, http.StatusNotFound, map[string]any{"errors": []string{}})
		return
	}
	request := &logical.Request{Path: path, Storage: s.storage, Operation: logical.ReadOperation}
	if r.Method == http.MethodPut || r.Method == http.MethodPost {
		request.Operation = logical.UpdateOperation
		decoder := json.NewDecoder(io.LimitReader(r.Body, 1<<20))
		decoder.UseNumber()
		if err := decoder.Decode(&request.Data); err != nil && !errors.Is(err, io.EOF) {
			answer(w, http.StatusBadRequest, map[string]any{"errors": []string{err.Error()}})
			return
		}
	}
	response, err := s.engine.HandleRequest(r.Context(), request)
	if status, failed := logical.RespondErrorCommon(request, response, err); status != 0 || failed != nil {
		if failed == nil {
			failed = errors.New("not found")
		}
		answer(w, max(status, http.StatusBadRequest), map[string]any{"errors": []string{failed.Error()}})
		return
	}
	if response == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	answer(w, http.StatusOK, map[string]any{"data": response.Data})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
