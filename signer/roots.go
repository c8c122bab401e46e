package signer

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/trust"
)

// maxRoot is the maximum size of a root file in bytes; that of the public sigstore has about 7000.
const maxRoot = 256 << 10

// authorities are whom a trust list believes about identities and times.
type authorities struct {
	identities []root.TrustedMaterial // each with its own certificate authorities and logs
	stamps     root.TrustedMaterial   // all authorities for timestamps
}

// loadAuthorities reads the root files. Errors: CodeInvalid for a file that is no root;
// CodeUnavailable if one cannot be read. A missing root is an error: quarantines that identities
// signed would no longer count.
func loadAuthorities(roots []trust.Root, load func(path string) ([]byte, error)) (authorities, error) {
	var all authorities
	var stamps []root.TimestampingAuthority
	var sigstore []*root.TrustedRoot
	for _, r := range roots {
		data, err := load(r.Path())
		if err != nil {
			return authorities{}, registry.WithHint(registry.Lastingf(registry.CodeUnavailable, "trust: read root %s: %w", r.Path(), err),
				"put the file back: roots in environments.yaml names it")
		}
		if r.Sigstore != "" {
			read, err := parseSigstoreRoot(data)
			if err != nil {
				return authorities{}, registry.Errorf(registry.CodeInvalid, "trust: root %s: %w", r.Path(), err)
			}
			sigstore, stamps = append(sigstore, read), append(stamps, read.TimestampingAuthorities()...)
			continue
		}
		authority, err := parseStampRoot(data)
		if err != nil {
			return authorities{}, registry.Errorf(registry.CodeInvalid, "trust: root %s: %w", r.Path(), err)
		}
		stamps = append(stamps, authority)
	}
	all.stamps = &stampMaterial{authorities: stamps}
	for _, s := range sigstore {
		all.identities = append(all.identities, &identityMaterial{TrustedRoot: s, stamps: stamps})
	}
	return all, nil
}

// CheckRoot checks the bytes of a root file. Errors: CodeInvalid.
func CheckRoot(r trust.Root, data []byte) error {
	_, err := loadAuthorities([]trust.Root{r}, func(string) ([]byte, error) { return data, nil })
	return err
}

// parseSigstoreRoot reads a trusted_root.json: the TrustedRoot message of sigstore protobuf-specs v0.5.
func parseSigstoreRoot(data []byte) (*root.TrustedRoot, error) {
	if len(data) > maxRoot {
		return nil, fmt.Errorf("%d bytes, want at most %d", len(data), maxRoot)
	}
	if err := registry.CheckJSON(data); err != nil {
		return nil, fmt.Errorf("trusted root: %s", plain(err))
	}
	read, err := root.NewTrustedRootFromJSON(data)
	if err != nil {
		return nil, fmt.Errorf("trusted root: %s", plain(err))
	}
	return read, nil
}

// parseStampRoot reads the certificate chain of an authority for timestamps (RFC 3161): PEM, its own
// certificate first and the root last.
func parseStampRoot(data []byte) (root.TimestampingAuthority, error) {
	if len(data) > maxRoot {
		return nil, fmt.Errorf("%d bytes, want at most %d", len(data), maxRoot)
	}
	var chain []*x509.Certificate
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			if len(bytes.TrimSpace(rest)) > 0 {
				return nil, errors.New("there is something that is no PEM block, want certificates alone")
			}
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("PEM block %.40q, want %q", block.Type, "CERTIFICATE")
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		chain = append(chain, c)
	}
	if len(chain) < 2 || chain[0].IsCA {
		return nil, errors.New("want the chain of a timestamp authority: its own certificate first, and the root last")
	}
	last := len(chain) - 1
	// The library takes authorities of one URI for one, so each has its own.
	return &root.SigstoreTimestampingAuthority{
		Leaf: chain[0], Intermediates: chain[1:last], Root: chain[last], URI: fmt.Sprintf("sha256:%x", sha256.Sum256(chain[0].Raw)),
	}, nil
}

// stampMaterial trusts authorities for timestamps and nothing else.
type stampMaterial struct {
	root.BaseTrustedMaterial
	authorities []root.TimestampingAuthority
}

func (m *stampMaterial) TimestampingAuthorities() []root.TimestampingAuthority { return m.authorities }

// identityMaterial is a root with the timestamp authorities of all roots.
type identityMaterial struct {
	*root.TrustedRoot
	stamps []root.TimestampingAuthority
}

func (m *identityMaterial) TimestampingAuthorities() []root.TimestampingAuthority { return m.stamps }

// stamped returns the earliest time at which a trusted authority had seen the signature of the
// envelope, or zero. It ignores timestamps of others.
func (a authorities) stamped(e envelope) time.Time {
	if a.stamps == nil || len(a.stamps.TimestampingAuthorities()) == 0 {
		return time.Time{}
	}
	verified, _, err := verify.VerifySignedTimestamp(e.bundle, a.stamps)
	if err != nil {
		return time.Time{}
	}
	var first time.Time
	for _, v := range verified {
		if first.IsZero() || v.Time.Before(first) {
			first = v.Time
		}
	}
	return first.UTC()
}
