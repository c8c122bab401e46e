// Package keyfile keeps signing keys in files as cosign does: NAME.key holds an
// ECDSA P-256 private key, encrypted with a password, NAME.pub the public key. cosign
// sign --key reads its files, and it reads the files of cosign generate-key-pair and cosign import-key-pair.
//
// The private key is PKCS #8 in a NaCl secretbox with a key that scrypt derives from the password,
// written as JSON in a PEM block (package encrypted of go-securesystemslib). An empty password
// is allowed; then only the file's permissions protect the key, and the derivation has the lowest
// cost that the format knows, since it has nothing to slow down.
package keyfile

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"os"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/signer"
)

// The types of PEM blocks with an encrypted key: that of cosign since version 2, and that of
// earlier versions.
const (
	typeSigstore = "ENCRYPTED SIGSTORE PRIVATE KEY"
	typeCosign   = "ENCRYPTED COSIGN PRIVATE KEY"
)

// maxFile is the maximum size of a key file in bytes; real ones have about 650.
const maxFile = 16 << 10

// Open reads the private key in the file at path. It takes about 0.2 s and 64 MiB, the cost of
// one password guess, and half of that for a key that was generated without a password. Errors:
// CodeUnavailable if the file cannot be read, with [os.ErrNotExist] in the chain if it does not
// exist; CodeInvalid for a wrong password or another kind of file.
func Open(path string, password []byte) (signer.Signer, error) {
	data, err := read(path)
	if err != nil {
		return nil, registry.Lastingf(registry.CodeUnavailable, "open key: %w", err)
	}
	key, err := decode(data, password)
	if err != nil {
		return nil, registry.WithHint(registry.Errorf(registry.CodeInvalid, "open key %s: %w", path, err),
			"the password is taken from COSIGN_PASSWORD; cosign import-key-pair turns other private keys into this format")
	}
	s, err := signer.New(key)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "open key %s: %w", path, err)
	}
	return s, nil
}

// read reads a regular file of limited size.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// decode decrypts a PEM document. Before it derives a key, the library refuses all cost
// parameters except the three that it writes (scrypt with N 2^15, 2^16 or 2^17, r 8, p 1). So a
// file can neither require terabytes of memory nor set a cost that makes passwords guessable.
func decode(data, password []byte) (crypto.Signer, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("it is larger than %d bytes, want an encrypted private key", maxFile)
	}
	block, rest := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("no PEM block, want %q", typeSigstore)
	}
	if block.Type != typeSigstore && block.Type != typeCosign {
		return nil, fmt.Errorf("PEM block %.40q, want %q", block.Type, typeSigstore)
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("there is more after the PEM block, want one key in a file")
	}
	der, err := encrypted.Decrypt(block.Bytes, password)
	if err != nil {
		return nil, fmt.Errorf("decrypt, is the password right? %w", err)
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, err
	}
	s, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("it holds a %T, want an ECDSA P-256 key", key)
	}
	return s, nil
}

// Generate creates a key and writes dir/name.key, readable only by its owner, and dir/name.pub.
// It creates dir if necessary, never replaces a file, and never leaves an incomplete one. It
// returns the public key in PEM. Errors: CodeConflict, with [os.ErrExist] in the chain, if either
// file exists; CodeInvalid for a name that is a path; CodeUnavailable if dir cannot be
// written.
func Generate(dir, name string, password []byte) (public []byte, err error) {
	if err := checkFree(dir, name); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInternal, "generate key: %w", err)
	}
	s, err := signer.New(key)
	if err != nil {
		return nil, err
	}
	private, err := encode(key, password)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInternal, "encrypt key: %w", err)
	}
	if err := writePair(dir, name, private, s.PublicKeyPEM()); err != nil {
		return nil, err
	}
	return s.PublicKeyPEM(), nil
}

func encode(key *ecdsa.PrivateKey, password []byte) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	sealed, err := encrypted.EncryptWithCustomKDFParameters(der, password, strength(password))
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: typeSigstore, Bytes: sealed}), nil
}

// strength returns the cost of the derivation. Cost makes a password slow to guess. An empty one
// is the first guess, whatever it costs.
func strength(password []byte) encrypted.KDFParameterStrength {
	if len(password) == 0 {
		return encrypted.Legacy
	}
	return encrypted.Standard
}
