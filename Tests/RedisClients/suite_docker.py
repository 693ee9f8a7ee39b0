"""What the suite of `limits` asks of docker: that a server is there. It is: the daemon, by its relay."""
import pytest


class Services:
    def start(self, name):
        if name not in ("redis-basic", "redis-uds"):
            pytest.skip(name + " is not served")

    def wait_for_service(self, *_):
        pass


@pytest.fixture(scope="session")
def docker_services():
    return Services()
