"""Every error that argmaxable raises on purpose.

ArgmaxableError
├── InputError            the user's data or arguments are wrong; a ValueError too
│   ├── HeadError         a weight matrix, bias or label list that is no head
│   ├── DomainError       a feature domain that is empty or does not fit the head
│   ├── LoadError         a model file in which no head could be read
│   │   └── AmbiguousError a file in which two programs could read different weights
│   ├── BundleError       a proof bundle that can't be read or belongs to another head
│   └── StoreError        a database that can't be opened, read or written
│       └── NotFoundError a run that is not there, or a class that a run says nothing about
└── EvidenceError         evidence of our own making failed its check: a bug, please report it
"""


class ArgmaxableError(Exception):
    """Base of all errors raised on purpose."""


class InputError(ArgmaxableError, ValueError):
    """The user's data or arguments are wrong; the message says what to do."""


class HeadError(InputError):
    """A weight matrix, bias or label list that is no head."""


class DomainError(InputError):
    """A feature domain that is empty or does not fit the head."""


class LoadError(InputError):
    """A model file in which no head could be read."""


class AmbiguousError(LoadError):
    """A file in which two programs could read different weights, or labels."""


class BundleError(InputError):
    """A proof bundle that can't be read or belongs to another head."""


class StoreError(InputError):
    """A database that can't be opened, read or written."""


class NotFoundError(StoreError):
    """A run that is not there, or a class that a run says nothing about."""


class EvidenceError(ArgmaxableError):
    """Evidence of our own making failed its check: a bug, please report it."""
