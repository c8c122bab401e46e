package signer

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// maxClockSkew is how far the time of an authority may be from that of this machine.
const maxClockSkew = 5 * time.Minute

// Seal adds material to the signature in a bundle: timestamps, a certificate, log entries. It is verified
// before a bundle is returned, because an authority's mistake would otherwise show only
// when somebody promotes. The zero Seal seals nothing.
type Seal struct {
	// Options lists the authorities to ask for one bundle. ctx is the call's.
	Options func(ctx context.Context) sign.BundleOptions
	// Roots returns the authorities that this side trusts, and reads their files.
	Roots func() (roots []trust.Root, load func(path string) ([]byte, error), err error)
	// Now is the clock of this machine, which authorities must agree with.
	Now storage.Clock
}

// Sealed returns a Signer with the key of s that seals its bundles. Notes are not, since they have no
// place for it. Errors: CodeInternal for a Signer that is not of this package, or an incomplete
// seal; those of the roots.
func Sealed(s Signer, seal Seal) (Signer, error) {
	key, ok := s.(*keySigner)
	if !ok || seal.Options == nil || seal.Roots == nil || seal.Now == nil {
		return nil, registry.Errorf(registry.CodeInternal, "seal: want a signer of this package, and all of a seal")
	}
	if _, err := seal.believed(); err != nil {
		return nil, err
	}
	return &keySigner{public: key.public, sign: key.sign, seal: &seal}, nil
}

// options are those of sigstore-go for one bundle.
func (s *Seal) options(ctx context.Context) sign.BundleOptions {
	if s == nil {
		return sign.BundleOptions{Context: ctx}
	}
	o := s.Options(ctx)
	o.Context = ctx
	return o
}

// failed gives an error of the library its code. What it cannot read is no better the next time.
func (s *Seal) failed(err error) error {
	if s == nil {
		return err
	}
	var request *url.Error // says what the transport says already
	if errors.As(err, &request) {
		err = request.Err
	}
	if registry.CodeOf(err) != registry.CodeInternal {
		return err
	}
	return registry.Lastingf(registry.CodeUnavailable, "the answer of an authority cannot be used: %s", plain(err))
}

func (s *Seal) believed() (authorities, error) {
	roots, load, err := s.Roots()
	if err != nil {
		return authorities{}, err
	}
	return loadAuthorities(roots, load)
}

// check verifies a new bundle as [Trust.Verify] will, but for who may sign what. Errors: CodeTrust.
func (s *Seal) check(bundle []byte) error {
	if s == nil {
		return nil
	}
	believed, err := s.believed()
	if err != nil {
		return err
	}
	e, err := parseBundle(bundle)
	if err != nil {
		return registry.Errorf(registry.CodeTrust, "%w", err)
	}
	var seen []time.Time
	if e.certified() {
		who, err := believed.identify(e)
		if err != nil {
			return notVouched("the certificate", err)
		}
		seen = append(seen, who.stamped)
	}
	if stamps, _ := e.bundle.Timestamps(); len(stamps) > 0 || !e.certified() {
		at, err := believed.stampedOrWhy(e)
		if err != nil {
			return notVouched("the timestamp", err)
		}
		seen = append(seen, at)
	}
	for _, at := range seen {
		if apart := s.Now().Sub(at); apart.Abs() > maxClockSkew {
			return registry.WithHint(registry.Errorf(registry.CodeTrust, "the authority's clock shows %s, and this machine's %s",
				at.Format(time.RFC3339), s.Now().UTC().Format(time.RFC3339)), "set the clock that is wrong")
		}
	}
	return nil
}

func notVouched(what string, err error) error {
	return registry.WithHint(registry.Errorf(registry.CodeTrust, "%s is not by an authority that roots in environments.yaml names: %w", what, err),
		"nothing was signed: name the authority's root, or ask another authority")
}

// stampedOrWhy is stamped, or why no timestamp counts.
func (a authorities) stampedOrWhy(e envelope) (time.Time, error) {
	if at := a.stamped(e); !at.IsZero() {
		return at, nil
	}
	if len(a.stamps.TimestampingAuthorities()) == 0 {
		return time.Time{}, errors.New("roots names none")
	}
	_, failed, err := verify.VerifySignedTimestamp(e.bundle, a.stamps)
	if err = errors.Join(append(failed, err)...); err == nil {
		return time.Time{}, errors.New("the bundle has no timestamp")
	}
	return time.Time{}, fmt.Errorf("%s", plain(err))
}
