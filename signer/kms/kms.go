package kms

import (
	"bytes"
	"context"
	"crypto"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sigstore/sigstore/pkg/signature/kms"
	"github.com/sigstore/sigstore/pkg/signature/kms/cliplugin"
	"github.com/sigstore/sigstore/pkg/signature/options"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/signer"
)

// Extension ends the name of a file that names a key by its URI.
const Extension = ".kms"

// callTime is how long one call of a service or a plugin may take.
const callTime = 30 * time.Second

// maxURI is the maximum length of a URI in bytes.
const maxURI = 1 << 10

var uriForm = regexp.MustCompile(`^([a-z][a-z0-9]*)://[!-~]*$`)

// Open opens the key that the file at path names, and asks for its public key. Errors:
// CodeUnavailable if the file cannot be read, with [os.ErrNotExist] in the chain if it does not
// exist, or if the service does not answer; CodeInvalid if it names no key that can sign here.
func Open(ctx context.Context, path string) (signer.Signer, error) {
	uri, err := read(path)
	if err != nil {
		return nil, err
	}
	s, err := OpenURI(ctx, uri)
	if err != nil {
		return nil, registry.Errorf(registry.CodeOf(err), "open key %s: %w", path, err)
	}
	return s, nil
}

// OpenURI opens the key with the URI. Errors: as [Open], except for the file.
func OpenURI(ctx context.Context, uri string) (signer.Signer, error) {
	if err := ValidateURI(uri); err != nil {
		return nil, err
	}
	// Without a deadline: a plugin would keep it for all calls that follow.
	key, err := kms.Get(context.WithoutCancel(ctx), uri, crypto.SHA256)
	if err != nil {
		return nil, notOpened(uri, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	public, err := key.PublicKey(options.WithContext(ctx))
	if err != nil {
		return nil, failed("public key of "+uri, err)
	}
	s, err := signer.NewRemote(public, func(ctx context.Context, data []byte) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, callTime)
		defer cancel()
		signature, err := key.SignMessage(bytes.NewReader(data), options.WithContext(ctx))
		if err != nil {
			return nil, failed(uri, err)
		}
		return signature, nil
	})
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "%s: %w", uri, err)
	}
	return s, nil
}

// ValidateURI checks the form of a URI. Errors: CodeInvalid, also for a URI with a password, since
// messages show it.
func ValidateURI(uri string) error {
	if len(uri) > maxURI || !uriForm.MatchString(uri) {
		return registry.Errorf(registry.CodeInvalid, "key %.80q: want a URI such as awskms:///alias/NAME, without spaces", uri)
	}
	_, rest, _ := strings.Cut(uri, "://")
	host, _, _ := strings.Cut(rest, "/")
	if user, _, found := strings.Cut(host, "@"); found && strings.Contains(user, ":") {
		return registry.Errorf(registry.CodeInvalid, "the URI of the key has a password: providers take it from the environment")
	}
	return nil
}

// read reads the URI in a file.
func read(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", registry.Lastingf(registry.CodeUnavailable, "open key: %w", err)
	}
	defer f.Close()
	data := make([]byte, maxURI+2)
	n, err := f.Read(data)
	if n == 0 {
		return "", registry.Errorf(registry.CodeInvalid, "open key %s: want a file with the URI of a key: %w", path, err)
	}
	return strings.TrimSuffix(string(data[:n]), "\n"), nil
}

// failed is the error of a call. A plugin that answers knows why it does not sign, so that trying
// again would not help.
func failed(what string, err error) error {
	if errors.Is(err, cliplugin.ErrorPluginReturnError) {
		return registry.Lastingf(registry.CodeUnavailable, "%s: %w", what, err)
	}
	return registry.Errorf(registry.CodeUnavailable, "%s: %w", what, err)
}

// notOpened says why there is no such key, and what would help.
func notOpened(uri string, err error) error {
	scheme, _, _ := strings.Cut(uri, "://")
	var missing *kms.ProviderNotFoundError
	if !errors.As(err, &missing) {
		return registry.Errorf(registry.CodeUnavailable, "%s: %w", uri, err)
	}
	hint := fmt.Sprintf("put the plugin sigstore-kms-%s on PATH", scheme)
	if tag, ok := tags[scheme]; ok {
		hint = fmt.Sprintf("this program was built without the tag %s: go build -tags %s, or put a plugin sigstore-kms-%s on PATH", tag, tag, scheme)
	}
	return registry.WithHint(registry.Errorf(registry.CodeInvalid, "there is no provider for %s", uri), "%s", hint)
}

// tags are the build tags of the providers, by the scheme of their URIs.
var tags = map[string]string{"awskms": "kms_aws", "gcpkms": "kms_gcp", "azurekms": "kms_azure", "hashivault": "kms_vault", "openbao": "kms_vault"}

// Linked lists the schemes of the providers that are linked into this program.
func Linked() []string {
	var schemes []string
	for _, prefix := range kms.SupportedProviders() {
		schemes = append(schemes, strings.TrimSuffix(prefix, "://"))
	}
	slices.Sort(schemes)
	return schemes
}
