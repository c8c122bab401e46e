package main

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/asn1"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"strings"

	"github.com/miekg/pkcs11"
	"github.com/sigstore/sigstore/pkg/signature"
)

// module is where Debian puts SoftHSM.
const module = "/usr/lib/softhsm/libsofthsm2.so"

var errUnsupported = errors.New("the plugin signs and returns public keys, nothing else: make keys with the tools of the module")

// key is a key pair in a token, with an open session.
type key struct {
	module  *pkcs11.Ctx
	session pkcs11.SessionHandle
	label   string
}

// openKey opens a session with the token, and logs in.
func openKey(resource string) (*key, error) {
	token, label, ok := strings.Cut(resource, "/")
	if !ok || token == "" || label == "" {
		return nil, fmt.Errorf("key %q: want softhsm://TOKEN/LABEL", resource)
	}
	k := &key{module: pkcs11.New(cmp.Or(os.Getenv("SOFTHSM_MODULE"), module)), label: label}
	if k.module == nil {
		return nil, errors.New("the PKCS #11 module cannot be loaded: install softhsm2, or set SOFTHSM_MODULE")
	}
	if err := k.module.Initialize(); err != nil {
		return nil, fmt.Errorf("initialize the module: %w", err)
	}
	slot, err := k.slot(token)
	if err != nil {
		return nil, err
	}
	if k.session, err = k.module.OpenSession(slot, pkcs11.CKF_SERIAL_SESSION); err != nil {
		return nil, fmt.Errorf("open a session with token %q: %w", token, err)
	}
	if err := k.module.Login(k.session, pkcs11.CKU_USER, os.Getenv("SOFTHSM_PIN")); err != nil {
		return nil, fmt.Errorf("log in to token %q, is SOFTHSM_PIN right? %w", token, err)
	}
	return k, nil
}

// slot finds the slot of a token by its label.
func (k *key) slot(token string) (uint, error) {
	slots, err := k.module.GetSlotList(true)
	if err != nil {
		return 0, fmt.Errorf("list slots: %w", err)
	}
	for _, slot := range slots {
		if info, err := k.module.GetTokenInfo(slot); err == nil && info.Label == token {
			return slot, nil
		}
	}
	return 0, fmt.Errorf("there is no token %q", token)
}

func (k *key) close() {
	_ = k.module.Finalize() // ends the session
	k.module.Destroy()
}

// find finds the one object of a class that has the label.
func (k *key) find(class uint) (pkcs11.ObjectHandle, error) {
	template := []*pkcs11.Attribute{pkcs11.NewAttribute(pkcs11.CKA_CLASS, class), pkcs11.NewAttribute(pkcs11.CKA_LABEL, k.label)}
	if err := k.module.FindObjectsInit(k.session, template); err != nil {
		return 0, err
	}
	found, _, err := k.module.FindObjects(k.session, 2)
	if err := errors.Join(err, k.module.FindObjectsFinal(k.session)); err != nil {
		return 0, err
	}
	if len(found) != 1 {
		return 0, fmt.Errorf("%d keys have the label %q, want one", len(found), k.label)
	}
	return found[0], nil
}

// PublicKey reads the point of the public key (PKCS #11 v2.40, section 2.3.3: a DER octet string).
func (k *key) PublicKey(...signature.PublicKeyOption) (crypto.PublicKey, error) {
	object, err := k.find(pkcs11.CKO_PUBLIC_KEY)
	if err != nil {
		return nil, err
	}
	attributes, err := k.module.GetAttributeValue(k.session, object, []*pkcs11.Attribute{pkcs11.NewAttribute(pkcs11.CKA_EC_POINT, nil)})
	if err != nil {
		return nil, err
	}
	var point []byte
	if _, err := asn1.Unmarshal(attributes[0].Value, &point); err != nil {
		return nil, fmt.Errorf("point of the public key: %w", err)
	}
	return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
}

// SignMessage signs the SHA-256 of a message. The module returns r and s, which ASN.1 joins.
func (k *key) SignMessage(message io.Reader, _ ...signature.SignOption) ([]byte, error) {
	data, err := io.ReadAll(message)
	if err != nil {
		return nil, err
	}
	object, err := k.find(pkcs11.CKO_PRIVATE_KEY)
	if err != nil {
		return nil, err
	}
	if err := k.module.SignInit(k.session, []*pkcs11.Mechanism{pkcs11.NewMechanism(pkcs11.CKM_ECDSA, nil)}, object); err != nil {
		return nil, err
	}
	digest := sha256.Sum256(data)
	signed, err := k.module.Sign(k.session, digest[:])
	if err != nil {
		return nil, err
	}
	half := len(signed) / 2
	return asn1.Marshal(struct{ R, S *big.Int }{new(big.Int).SetBytes(signed[:half]), new(big.Int).SetBytes(signed[half:])})
}

// VerifySignature is not offered: public keys verify without the module.
func (*key) VerifySignature(_, _ io.Reader, _ ...signature.VerifyOption) error { return errUnsupported }

// CreateKey is not offered: the tools of the module make keys.
func (*key) CreateKey(context.Context, string) (crypto.PublicKey, error) { return nil, errUnsupported }

// CryptoSigner is not part of the protocol.
func (*key) CryptoSigner(context.Context, func(error)) (crypto.Signer, crypto.SignerOpts, error) {
	return nil, nil, errUnsupported
}

// DefaultAlgorithm is the algorithm of all keys.
func (*key) DefaultAlgorithm() string { return "ecdsa-p256" }

// SupportedAlgorithms lists that algorithm.
func (k *key) SupportedAlgorithms() []string { return []string{k.DefaultAlgorithm()} }
