//! TLS to the server: a front that speaks nothing else, with a certificate that is made for the test.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use holdpoint_runtime::ports::store::{StoreFault, StoreFaultKind};
use holdpoint_stores::postgres::{PostgresOptions, PostgresStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::database::Database;

/// What a client asks a PostgreSQL server for before it begins with TLS.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

const CERTIFICATE: &str = "
[req]
distinguished_name = name
x509_extensions = extensions
prompt = no
[name]
CN = a server for tests
[extensions]
basicConstraints = critical, CA:FALSE
keyUsage = digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = IP:127.0.0.1
";

/// A certificate for 127.0.0.1 that vouches for itself, and its key.
fn certificate(folder: &Path) -> (PathBuf, PathBuf) {
    let (config, certificate, key) = (folder.join("config"), folder.join("certificate.pem"), folder.join("key.pem"));
    std::fs::write(&config, CERTIFICATE).unwrap();
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]);
    command.arg("-config").arg(config).arg("-out").arg(&certificate).arg("-keyout").arg(&key);
    let output = command.output().expect("openssl is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (certificate, key)
}

/// A front to the server that lets nobody in without TLS.
async fn front(server: SocketAddr, certificate: &Path, key: &Path) -> SocketAddr {
    let certificates = CertificateDer::pem_file_iter(certificate).unwrap().collect::<Result<_, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(key).unwrap();
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(certificates, key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut request = [0; 8];
                client.read_exact(&mut request).await.ok()?;
                if request != SSL_REQUEST {
                    return None;
                }
                client.write_all(b"S").await.ok()?;
                let mut client = acceptor.accept(client).await.ok()?;
                let mut server = TcpStream::connect(server).await.ok()?;
                tokio::io::copy_bidirectional(&mut client, &mut server).await.ok()
            });
        }
    });
    address
}

fn why(fault: &StoreFault) -> String {
    format!("{fault}: {}", fault.source.as_ref().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_spoken_to_over_tls_if_its_certificate_is_trusted_and_not_at_all_otherwise() {
    let (folder, database) = (tempfile::tempdir().unwrap(), Database::new().await);
    let (certificate, key) = certificate(folder.path());
    let front = front(database.socket(), &certificate, &key).await;
    let plain = database.by_way_of(front);
    let mut trusting = PostgresOptions::default();
    trusting.authorities = Some(certificate);
    for mode in ["sslmode=require", "sslmode=prefer"] {
        let address = plain.replace("sslmode=disable", mode);
        PostgresStore::open_with(&address, trusting.clone()).await.unwrap();
        // Also where TLS is only preferred: whoever stands in between could offer a certificate of his own.
        let fault = PostgresStore::open(&address).await.err().expect("nobody vouches for it");
        assert_eq!(fault.kind, StoreFaultKind::Unavailable);
        assert!(why(&fault).contains("certificate"), "{}", why(&fault));
    }
    // The front is what it says it is.
    assert!(PostgresStore::open_with(&plain, trusting).await.is_err());
}
