package signertest

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/sigstore/sigstore-go/pkg/tlog"
)

// Rekor enters signatures in the log of the authority over HTTP, as Rekor's API of version 1 does: those that
// [Authority.RootWithLog] asks for. change, if there is one, changes the time of the entry.
func (a *Authority) Rekor(change func(time.Time) time.Time) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := time.Now()
		if change != nil {
			at = change(at)
		}
		entry, err := a.enter(r, at)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		const id = "24296fb24b8ad77a0000000000000000000000000000000000000000000000000000000000000000"
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", id)
		w.Header().Set("Location", "/api/v1/log/entries/"+id)
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]any{id: entry})
	})
}

// enter reads a proposed entry of the kind dsse, and returns the entry in the log.
func (a *Authority) enter(r *http.Request, at time.Time) (map[string]any, error) {
	var proposed struct {
		Kind string
		Spec struct {
			ProposedContent struct {
				Envelope  string
				Verifiers [][]byte
			}
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&proposed); err != nil {
		return nil, err
	}
	content := proposed.Spec.ProposedContent
	if r.URL.Path != "/api/v1/log/entries" || proposed.Kind != "dsse" || len(content.Verifiers) != 1 {
		return nil, errors.New("no entry of the kind dsse")
	}
	block, _ := pem.Decode(content.Verifiers[0])
	if block == nil {
		return nil, errors.New("no certificate")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	var envelope dsse.Envelope
	if err := json.Unmarshal([]byte(content.Envelope), &envelope); err != nil {
		return nil, err
	}
	signature, err := base64.StdEncoding.DecodeString(envelope.Signatures[0].Sig)
	if err != nil {
		return nil, err
	}
	made, err := a.logs.GenerateTlogEntry(certificate, &envelope, signature, at.Unix(), true)
	if err != nil {
		return nil, err
	}
	e := made.TransparencyLogEntry()
	// The library keeps the promise to itself.
	promise, err := a.logs.RekorSignPayload(tlog.RekorPayload{
		Body: base64.StdEncoding.EncodeToString(e.GetCanonicalizedBody()), IntegratedTime: e.GetIntegratedTime(), LogIndex: e.GetLogIndex(),
		LogID: hex.EncodeToString(e.GetLogId().GetKeyId()),
	})
	if err != nil {
		return nil, err
	}
	hashes := []string{}
	for _, h := range e.GetInclusionProof().GetHashes() {
		hashes = append(hashes, hex.EncodeToString(h))
	}
	return map[string]any{
		"body": e.GetCanonicalizedBody(), "integratedTime": e.GetIntegratedTime(),
		"logID": hex.EncodeToString(e.GetLogId().GetKeyId()), "logIndex": e.GetLogIndex(),
		"verification": map[string]any{
			"signedEntryTimestamp": promise,
			"inclusionProof": map[string]any{
				"checkpoint": e.GetInclusionProof().GetCheckpoint().GetEnvelope(), "hashes": hashes, "logIndex": e.GetInclusionProof().GetLogIndex(),
				"rootHash": hex.EncodeToString(e.GetInclusionProof().GetRootHash()), "treeSize": e.GetInclusionProof().GetTreeSize(),
			},
		},
	}, nil
}
