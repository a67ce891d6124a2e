//! RSA: a public key made for these tests, whose private half was thrown away, and what was signed with it before.

use super::*;

const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\n\
    MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAoBQlB8KH1FQW1y7bHNLx\n\
    m0VPWlfSnb4B6lC1s8XNq82eEJ4x3IwjFDZcnHLnjuuvAjO19ydySBNAVMU5YEXi\n\
    k5HQx3J72glEE5XScZ5RkoiMpPUqeezihvjXLeUO/HujtRRDvXU1p23XtTF53AFd\n\
    7P3OTBL/x5TIv5+I4a3A3CcXkaB3pA15yT9hmLp5Qf1m0lZLSvZRxcLwrg2YJrmy\n\
    sXfoozav8GVhPZh/WyrLx5gC3JDdLVU8ZnIU4h2aLpIKsBi4Cj9PPaHlDaajbBE+\n\
    eC+uIjs9eoMc9Pd59ESYDE8//3pU1s2s+GnvJhxE5sZZbVe937ZMV+RU5rwdVSTy\n\
    uQIDAQAB\n\
    -----END PUBLIC KEY-----\n";
const MODULUS: &str = concat!(
    "oBQlB8KH1FQW1y7bHNLxm0VPWlfSnb4B6lC1s8XNq82eEJ4x3IwjFDZcnHLnjuuvAjO19ydySBNAVMU5YEXik5HQx3J72glEE5XS",
    "cZ5RkoiMpPUqeezihvjXLeUO_HujtRRDvXU1p23XtTF53AFd7P3OTBL_x5TIv5-I4a3A3CcXkaB3pA15yT9hmLp5Qf1m0lZLSvZR",
    "xcLwrg2YJrmysXfoozav8GVhPZh_WyrLx5gC3JDdLVU8ZnIU4h2aLpIKsBi4Cj9PPaHlDaajbBE-eC-uIjs9eoMc9Pd59ESYDE8_",
    "_3pU1s2s-GnvJhxE5sZZbVe937ZMV-RU5rwdVSTyuQ",
);
const RS256: &str = concat!(
    "eyJhbGciOiJSUzI1NiIsImtpZCI6InIifQ.eyJvcmciOiJhY21lIn0.eEoraKWJyZXBy45bLOxgZCcDBRJmmgJSX_k0DMz5-mWOg",
    "4zqpZIGeYA-qV0zgdAh29FWbEpCJn6WmUU5-SlpBD8N-Lrt1Tzlk_nF2fnc1BJvVFNUUsNwg0syVlUWe5VaBDITwei7Pe5ZWvsv-",
    "nrOXARCLYSzDInJx22UpnZJHlymWJuW1RxLx7VA1hd7QHc2leH5cJOnFYtcjmXzkn9nr-qlRFjffSorgAEomn6ubF6E_pf-xKC_t",
    "oV1YbNiKqp1931oN46Gfzqfkf2kC49RBh1mt--3cELnse4f5UjFG8eDGSaeU8zdJAYd3zUaB86liUCAQG1cQ97iEAjvSBOurQ",
);
const PS512: &str = concat!(
    "eyJhbGciOiJQUzUxMiIsImtpZCI6InIifQ.eyJvcmciOiJhY21lIn0.LH4Wec1L2TL2KQSfWIqQFouSgFYidCh1Cvt9fZDOBT--X",
    "s0sr9Cbt1PHlewzX-oQ1d7hKX6uQm1o_uFQetkI1lqxLnylHaAWb0Ldfl_SYQ0-jdSsMOcFn-1IW1J_WFxy0NKmHmOLukFRa3bC8",
    "IQFt_66DyX1isi6DM0xo1jJ6yDWg2YcQ2YPZ-cnstdX0GU5FCakHhl8T4FI2up2A2cKgQveORu4lGKPrve9-SxC0HB5OtW2Rz9T5",
    "HXwgidclgVzX8u_kr4x6TGTwEhQU58L6k9eUnquGu9Khe6aZwQMmlXexZyo8OMqQnSd_ZaMpGEYbKWVZGrbv33ztbvGiRNrmw",
);

#[test]
fn rsa_keys_verify_and_are_never_secrets() {
    let set = json!({"keys": [{"kty": "RSA", "kid": "r", "alg": "RS256", "n": MODULUS, "e": "AQAB"}]});
    let pem = Verifier::new(settings(JwtKey::Pem(Secret::new(PUBLIC)))).unwrap();
    let set = Verifier::new(settings(JwtKey::Jwks(Secret::new(set.to_string())))).unwrap();
    assert_eq!((org(&pem, RS256), org(&pem, PS512)), (Some("acme".into()), Some("acme".into())));
    assert_eq!((org(&set, RS256), org(&set, PS512)), (Some("acme".into()), None), "the set names one algorithm");
    for secret in [PUBLIC, PUBLIC.trim(), MODULUS] {
        let key = EncodingKey::from_secret(secret.as_bytes());
        let forged = signed(&json!({"org": "acme"}), &Header::new(Algorithm::HS256), &key);
        assert_eq!((org(&pem, &forged), org(&set, &forged)), (None, None));
    }
    // One letter of the claims.
    let changed = RS256.replacen("eyJvcmciOiJhY21lIn0", "eyJvcmciOiJhY21mIn0", 1);
    assert_eq!(org(&pem, &changed), None);

    let before = std::time::Instant::now();
    for _ in 0..200 {
        assert!(pem.verify(RS256).is_some());
    }
    println!("RS256: {} ns", before.elapsed().as_nanos() / 200);
}
