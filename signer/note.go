package signer

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
)

// MaxNote is the maximum size of a signed note in bytes.
const MaxNote = 128 << 10

// noteECDSA is the signature type of ECDSA in a C2SP signed-note. The identifier of the key is the
// first four bytes of the SHA-256 of its DER SubjectPublicKeyInfo, and the signature is the ASN.1
// form over the SHA-256 of the text. Source: https://c2sp.org/signed-note, "Signature types", and
// package note of github.com/transparency-dev/formats, which it names for the details.
const noteECDSA = 0x02

// envelopeStart begins everything that keys sign in DSSE. No note may begin so, and no DSSE
// envelope begins otherwise, so that neither signature can be shown for the other.
const envelopeStart = "DSSEv1 "

// noteSigner is a key under the name with which it signs notes.
type noteSigner struct {
	ctx    context.Context //nolint:containedctx // of one call: the library's Signer takes none
	name   string
	signer *keySigner
}

func (n noteSigner) Name() string { return n.name }

func (n noteSigner) KeyHash() uint32 { return n.signer.public.noteID() }

func (n noteSigner) Sign(text []byte) ([]byte, error) {
	return n.signer.sign(n.ctx, text)
}

// noteID identifies the key in notes. It is not unique.
func (k publicKey) noteID() uint32 {
	sum := sha256.Sum256(k.der)
	return binary.BigEndian.Uint32(sum[:])
}

// SignNote signs a text of whole lines under a name, which is its first line.
func (s *keySigner) SignNote(ctx context.Context, name, text string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, registry.Errorf(registry.CodeUnavailable, "sign note: %w", err)
	}
	if !strings.HasPrefix(text, name+"\n") || strings.HasPrefix(text, envelopeStart) {
		return nil, registry.Errorf(registry.CodeInvalid, "sign note: want a text with the name %q of its origin as first line", name)
	}
	signed, err := note.Sign(&note.Note{Text: text}, noteSigner{ctx, name, s})
	if err == nil {
		_, err = note.Open(signed, &noteKeys{name: name, keys: []trustedKey{{publicKey: s.public}}})
	}
	if err != nil {
		return nil, registry.Errorf(registry.CodeInternal, "sign note with key %s: %w", s.public.id, err)
	}
	return signed, nil
}

// NoteKey returns the verifier key of a public key for a name, in the form of C2SP signed-note
// (vkey), for other programs. Errors: CodeInvalid if it is not an ECDSA P-256 public key.
func NoteKey(name string, publicKeyPEM []byte) (string, error) {
	key, err := parsePublicKey(publicKeyPEM)
	if err != nil {
		return "", registry.Errorf(registry.CodeInvalid, "public key: %w", err)
	}
	return fmt.Sprintf("%s+%08x+%s", name, key.noteID(), base64.StdEncoding.EncodeToString(append([]byte{noteECDSA}, key.der...))), nil
}

// SignNote signs a note in a role. It is a [trust.SignNote]. Notes have no place for a certificate,
// so where the role signs as an identity, the key of the name local signs them. Errors: as
// Sign; CodeUnavailable if there is an identity and no key.
func (k *Keyring) SignNote(ctx context.Context, role evidence.Role, name, text string) ([]byte, error) {
	s, err := k.Signer(ctx, role)
	if err != nil {
		return nil, err
	}
	if s.KeyID() == "" {
		if s, err = k.first(ctx, role, ".key", ".kms"); errors.Is(err, fs.ErrNotExist) {
			err = registry.Lastingf(registry.CodeUnavailable,
				"sign a checkpoint as %s: an identity signs none: want a key, %s.key, that is trusted as %s", role, filepath.Join(k.Dir, LocalKey), role)
		}
		if err != nil {
			return nil, err
		}
	}
	return s.SignNote(ctx, name, text)
}

// VerifyNote verifies a signed note. It is a [trust.VerifyNote]. It ignores signatures under
// other names and by other keys. Of several trusted keys that signed it, the one in the best state
// counts. Errors: CodeTrust; those of reading the keys, as in [Trust.Verify].
func (t *Trust) VerifyNote(ctx context.Context, signed []byte, role evidence.Role, name, resource string) (trust.SignedNote, error) {
	if len(signed) > MaxNote {
		return trust.SignedNote{}, registry.Errorf(registry.CodeTrust, "note: %d bytes, want at most %d", len(signed), MaxNote)
	}
	keys, err := t.trusted(ctx, resource)
	if err != nil {
		return trust.SignedNote{}, err
	}
	known := &noteKeys{name: name, keys: slices.DeleteFunc(keys, func(k trustedKey) bool { return k.missing || !slices.Contains(k.roles, role) })}
	opened, err := note.Open(signed, known)
	if errors.As(err, new(*note.UnverifiedNoteError)) {
		return trust.SignedNote{}, registry.Errorf(registry.CodeTrust,
			"note: no key that is trusted as %s for %s signed it as %q%s", role, resource, name, known.list())
	}
	if err != nil {
		return trust.SignedNote{}, registry.Errorf(registry.CodeTrust, "note: %w", err)
	}
	best := known.best()
	return trust.SignedNote{Text: opened.Text, Signer: best.id, Key: best.state, RetiredAt: best.retiredAt, Window: best.window}, nil
}

// noteKeys verifies the signatures of a note that keys made under a name, and notes which did.
type noteKeys struct {
	name string
	keys []trustedKey
	made []trustedKey // those that signed
}

// Verifier returns the keys with an identifier.
func (k *noteKeys) Verifier(name string, hash uint32) (note.Verifier, error) {
	with := slices.DeleteFunc(slices.Clone(k.keys), func(key trustedKey) bool { return key.noteID() != hash })
	if name != k.name || len(with) == 0 {
		return nil, &note.UnknownVerifierError{Name: name, KeyHash: hash}
	}
	return sameID{k, with, hash}, nil
}

// best returns the key in the best state of those that signed.
func (k *noteKeys) best() trustedKey {
	order := evidence.KeyStates()
	return slices.MinFunc(k.made, func(a, b trustedKey) int { return slices.Index(order, a.state) - slices.Index(order, b.state) })
}

// list names the keys, for messages.
func (k *noteKeys) list() string {
	var names []string
	for _, key := range k.keys {
		names = append(names, key.String())
	}
	if len(names) == 0 {
		return "; there is no such key"
	}
	return "; trusted are " + strings.Join(names, ", ")
}

// sameID is the keys that have one identifier, usually one.
type sameID struct {
	all  *noteKeys
	keys []trustedKey
	hash uint32
}

func (s sameID) Name() string { return s.all.name }

func (s sameID) KeyHash() uint32 { return s.hash }

// Verify reports whether any of the keys signed the text.
func (s sameID) Verify(text, signature []byte) bool {
	sum := sha256.Sum256(text)
	for _, k := range s.keys {
		if ecdsa.VerifyASN1(k.key, sum[:], signature) {
			s.all.made = append(s.all.made, k)
			return true
		}
	}
	return false
}
