// Copy this file to config.h, which git ignores, and fill it in.
#pragma once

#define WIFI_SSID "the network"
#define WIFI_PASSWORD "its password"

// An API key with this device's MAC address as its scope opens nothing else when somebody reads it out of the flash.
#define HOMEPORT_URL "https://homeport.example"
#define HOMEPORT_API_KEY "64 hexadecimal digits"

// The certificate of the authority that signed the server's, in PEM form. Without it nobody would know who answers.
#define HOMEPORT_CA_CERTIFICATE                                                                                                   \
    "-----BEGIN CERTIFICATE-----\n"                                                                                               \
    "...\n"                                                                                                                       \
    "-----END CERTIFICATE-----\n"
