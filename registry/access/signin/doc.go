// Package signin signs people in who use a browser: by a token of the service, or at an issuer that
// access.yaml names. It answers the requests below /signin/ and /signout; who is signed in is found out by
// package authn.
package signin
