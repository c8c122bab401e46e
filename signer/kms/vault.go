//go:build kms_vault

package kms

import _ "github.com/sigstore/sigstore/pkg/signature/kms/hashivault" // registers itself
