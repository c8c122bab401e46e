//go:build kms_gcp

package kms

import _ "github.com/sigstore/sigstore/pkg/signature/kms/gcp" // registers itself
