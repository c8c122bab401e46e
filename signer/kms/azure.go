//go:build kms_azure

package kms

import _ "github.com/sigstore/sigstore/pkg/signature/kms/azure" // registers itself
