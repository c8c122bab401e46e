package scrub

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// fault is what is wrong with content. The zero fault means intact content.
type fault struct {
	kind   storage.DamageKind
	detail string
}

// checkOne reads the content of a digest, and records whether it is damaged or intact again.
// Errors: those of the ports, and of a storage that does not answer.
func (s *Scrubber) checkOne(ctx context.Context, d registry.Digest, did *Result) error {
	n, wrong, err := s.hash(ctx, d)
	if err != nil {
		return err
	}
	did.Checked++
	did.Bytes += n
	if s.Progress != nil {
		s.Progress(n)
	}
	known, err := s.Damages.Get(ctx, string(d))
	isKnown := err == nil
	if err != nil && !registry.HasCode(err, registry.CodeNotFound) {
		return err
	}
	switch {
	case wrong == fault{} && isKnown:
		did.Repaired++
		if s.Repaired != nil {
			s.Repaired(ctx, known)
		}
		return s.forget(ctx, d)
	case wrong == fault{}:
		return nil
	case isKnown && known.Kind == wrong.kind:
		did.Damaged++
		return nil
	}
	isDamage, err := s.note(ctx, d, wrong)
	if isDamage {
		did.Damaged++
	}
	return err
}

// note records damage, unless no repository has the content any more: garbage collection may
// delete it while it is read.
func (s *Scrubber) note(ctx context.Context, d registry.Digest, wrong fault) (bool, error) {
	holders, err := s.Inventory.Holders(ctx, d)
	if err != nil || len(holders) == 0 {
		return false, err
	}
	damage := storage.Damage{Digest: d, Kind: wrong.kind, Detail: wrong.detail, Repositories: holders}
	if damage.Releases, err = s.affected(ctx, d, holders); err != nil {
		return true, err
	}
	if damage.Found, err = s.Clock.CatalogTime(ctx); err != nil {
		return true, err
	}
	if err := s.Damages.Put(ctx, string(d), damage); err != nil {
		return true, err
	}
	if s.Found != nil {
		s.Found(ctx, damage)
	}
	return true, nil
}

func (s *Scrubber) forget(ctx context.Context, d registry.Digest) error {
	err := s.Damages.Delete(ctx, string(d))
	if registry.HasCode(err, registry.CodeNotFound) { // another process was first
		return nil
	}
	return err
}

// hash reads the content of a digest at the set rate, and returns its fault.
func (s *Scrubber) hash(ctx context.Context, d registry.Digest) (int64, fault, error) {
	h, err := registry.NewHash(d)
	if err != nil {
		return 0, fault{storage.DamageUnreadable, err.Error()}, nil
	}
	blob, size, err := s.Blobs.Open(ctx, d)
	if registry.HasCode(err, registry.CodeNotFound) {
		var lacking interface{ Part() registry.Digest }
		if errors.As(err, &lacking) {
			return 0, fault{storage.DamageMissing, fmt.Sprintf("it is composed of %s, whose bytes are missing", lacking.Part())}, nil
		}
		return 0, fault{storage.DamageMissing, "its bytes are missing"}, nil
	}
	if err != nil {
		return failed(ctx, 0, err)
	}
	defer blob.Close()
	var n int64
	buffer := make([]byte, min(readBytes, size+1))
	for {
		k, err := blob.Read(buffer)
		h.Write(buffer[:k])
		n += int64(k)
		if waiting := s.wait(ctx, k); waiting != nil {
			return n, fault{}, waiting
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return failed(ctx, n, err)
		}
	}
	got := digest.NewDigest(d.Algorithm(), h)
	if got == d {
		return n, fault{}, nil
	}
	detail := fmt.Sprintf("its %d bytes have the digest %s", n, got)
	if composed, ok := blob.(interface{ Parts() []registry.Digest }); ok {
		if detail, err = s.namePart(ctx, composed.Parts(), detail); err != nil {
			return n, fault{}, err
		}
	}
	return n, fault{storage.DamageChanged, detail}, nil
}

// namePart says which part of composed content is damaged. It adds nothing if all parts are intact.
func (s *Scrubber) namePart(ctx context.Context, parts []registry.Digest, detail string) (string, error) {
	for _, part := range parts {
		_, wrong, err := s.hash(ctx, part)
		if err != nil {
			return "", err
		}
		if wrong != (fault{}) {
			return fmt.Sprintf("it is composed of %s, which is damaged: %s", part, wrong.detail), nil
		}
	}
	return detail, nil
}

// wait keeps the rate after n bytes.
func (s *Scrubber) wait(ctx context.Context, n int) error {
	if s.pace == nil {
		return ctx.Err()
	}
	return s.pace.WaitN(ctx, n)
}

// failed distinguishes a storage that does not answer from content that cannot be read. The
// first is an error, the second is damage.
func failed(ctx context.Context, n int64, err error) (int64, fault, error) {
	if ctx.Err() != nil || registry.HasCode(err, registry.CodeUnavailable) {
		return n, fault{}, err
	}
	return n, fault{storage.DamageUnreadable, err.Error()}, nil
}
