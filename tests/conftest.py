"""Settings that hold for all tests."""

from hypothesis import HealthCheck, settings

# on a busy machine an example may be slow without being wrong
settings.register_profile("hubbub", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("hubbub")
