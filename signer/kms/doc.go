// Package kms signs with keys that never leave a key management service or a hardware module. A
// file NAME.kms beside the key files names such a key by its URI, as cosign's --key does:
//
//	awskms:///alias/mlpromote-builder
//	gcpkms://projects/P/locations/L/keyRings/R/cryptoKeys/K/cryptoKeyVersions/1
//	azurekms://VAULT.vault.azure.net/KEY
//	hashivault://KEY, openbao://KEY
//	NAME://...           the program sigstore-kms-NAME on PATH, sigstore's protocol for plugins
//
// The four providers of clouds and vaults are linked with the build tags kms_aws, kms_gcp, kms_azure and
// kms_vault. They take credentials from the environment, as the tools of their vendors do. A
// plugin is a program of the user: it runs with the environment of this one.
//
// Only ECDSA P-256 keys sign, as in key files.
package kms
