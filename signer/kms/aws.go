//go:build kms_aws

package kms

import _ "github.com/sigstore/sigstore/pkg/signature/kms/aws" // registers itself
