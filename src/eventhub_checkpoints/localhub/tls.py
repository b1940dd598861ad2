"""Certificate authority for one run: created on start, deleted on stop.

Python's standard library cannot create certificates, so the `openssl` command does it.
"""

from __future__ import annotations

import ipaddress
import shutil
import ssl
import subprocess
import tempfile
from pathlib import Path

_DAYS = "30"
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class SelfMadeAuthority:
    """Directory with a CA and a server certificate signed by it.

    Args:
        names: host names and addresses for which the certificate is valid.

    Raises:
        RuntimeError: the `openssl` command is missing, or failed.
    """

    def __init__(self, names: list[str]) -> None:
        if shutil.which("openssl") is None:
            raise RuntimeError(
                "TLS needs the openssl command to make a certificate, and it is not on the PATH"
            )
        self._folder = tempfile.TemporaryDirectory(prefix="localhub-")
        self._path = Path(self._folder.name)
        self.ca_file = str(self._path / "ca.pem")
        try:
            self._make_authority()
            self._make_server(names)
        except BaseException:
            self.close()
            raise

    def context(self) -> ssl.SSLContext:
        """Return the server's TLS context."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._path / "server.pem", self._path / "server.key")
        return context

    def close(self) -> None:
        """Delete the files."""
        self._folder.cleanup()

    def _make_authority(self) -> None:
        self._openssl(
            "req", "-x509", *_KEY, "-keyout", "ca.key", "-out", "ca.pem", "-days", _DAYS,
            "-subj", "/CN=localhub test authority",
            "-addext", "basicConstraints=critical,CA:TRUE",
            "-addext", "keyUsage=critical,keyCertSign,cRLSign",
        )  # fmt: skip

    def _make_server(self, names: list[str]) -> None:
        extensions = (
            f"subjectAltName={','.join(map(_alternative_name, names))}\n"
            "basicConstraints=critical,CA:FALSE\n"
            "keyUsage=critical,digitalSignature\n"
            "extendedKeyUsage=serverAuth\n"
            "subjectKeyIdentifier=hash\n"
            "authorityKeyIdentifier=keyid\n"
        )
        (self._path / "server.ext").write_text(extensions)
        self._openssl(
            "req", *_KEY, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhub"
        )
        self._openssl(
            "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-out", "server.pem", "-days", _DAYS, "-extfile", "server.ext",
        )  # fmt: skip

    def _openssl(self, *arguments: str) -> None:
        done = subprocess.run(
            ["openssl", *arguments], cwd=self._path, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"openssl {arguments[0]} failed: {done.stderr.strip()}")


def _alternative_name(name: str) -> str:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return f"DNS:{name}"
    return f"IP:{name}"
